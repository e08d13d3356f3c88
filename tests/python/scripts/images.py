# SPDX-License-Identifier: Apache-2.0
"""Image classification's input: files by folder, decoded, augmented and batched on workers."""
import os

import numpy as np
import tensorflow as tf

AUTOTUNE = tf.data.experimental.AUTOTUNE
IMG_SIZE = 32
CLASS_NAMES = np.array(["digits", "photos"])

list_ds = tf.data.Dataset.list_files("examples/*/*.jpg", shuffle=False)
image_count = len(list(list_ds))
print(image_count, "images")


def get_label(file_path):
    parts = tf.strings.split(file_path, os.path.sep)
    return tf.argmax(tf.cast(parts[-2] == CLASS_NAMES, tf.int32))


def decode_img(img):
    img = tf.io.decode_jpeg(img, channels=3)
    img = tf.image.convert_image_dtype(img, tf.float32)
    return tf.image.resize(img, [IMG_SIZE, IMG_SIZE])


def process_path(file_path):
    label = get_label(file_path)
    img = tf.io.read_file(file_path)
    return decode_img(img), label


def augment(image, label):
    image = tf.image.resize_with_crop_or_pad(image, IMG_SIZE + 6, IMG_SIZE + 6)
    image = tf.image.random_crop(image, size=[IMG_SIZE, IMG_SIZE, 3], seed=123)
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, max_delta=0.5)
    image = tf.clip_by_value(image, 0, 1)
    return image, label


tf.random.set_seed(7)
options = tf.data.Options()
options.deterministic = True
options.autotune.enabled = True
options.threading.private_threadpool_size = 2

labeled_ds = list_ds.map(process_path, num_parallel_calls=AUTOTUNE)
for image, label in labeled_ds.take(1):
    print("Image shape: ", image.numpy().shape)
    print("Label: ", label.numpy(), CLASS_NAMES[label.numpy()])
for image, label in labeled_ds:
    print(np.round(image.numpy().mean(axis=(0, 1)), 1).tolist())

dispatcher = tf.data.experimental.service.DispatchServer()
worker = tf.data.experimental.service.WorkerServer(
    tf.data.experimental.service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])
)
train_ds = (
    labeled_ds.cache()
    .repeat(4)
    .shuffle(8, seed=3)
    .map(augment, num_parallel_calls=AUTOTUNE)
    .batch(4, drop_remainder=True)
    .with_options(options)
    .apply(tf.data.experimental.service.distribute("distributed_epoch", dispatcher.target, job_name="train"))
    .prefetch(AUTOTUNE)
)
print(train_ds.element_spec[0].shape[1:], train_ds.element_spec[1].dtype.name)
for images, labels in train_ds:
    print(images.shape, labels.numpy().tolist(), bool(tf.reduce_max(images) <= 1.0))
