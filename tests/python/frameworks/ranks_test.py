# SPDX-License-Identifier: Apache-2.0
"""Ranks of torch.distributed over gloo: handwritten digits, read as image files on workers, trained on by
DistributedDataParallel, saved with torch.distributed.checkpoint and restored by fewer ranks: each image once."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import penstock as ps
from cluster import Cluster

DIGITS = pathlib.Path(__file__).parents[3] / "examples/digits/digits.csv"
BATCH = 8
IMAGES = 224 * BATCH  # of 1,797: two and four ranks divide these evenly
STEPS = 12  # of each rank before the checkpoint

# A rank: restores the checkpoint if there is one; else saves it after STEPS steps, reads some more and is killed.
RANK = """
import json, os, signal, sys
import penstock as ps
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

rank, world, store, service, images, folder, coordinated, steps, batch = json.loads(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)

def decode(file):
    pixels = ps.ops.decode_png(file["image"]).reshape(8, 8, 3)
    return {"x": pixels[:, :, 0].reshape(64).astype(ps.float32) / 240.0, "y": file["label"], "path": file["path"]}

def distribute(dataset, **options):
    keep = ps.data.service.AckMode.ON_COMMIT
    return ps.torch.distribute(
        dataset, "distributed_epoch", service, "digits", coordinated=coordinated, ack_mode=keep, **options)

dataset = ps.ImageDirectory(images, shuffle=True, seed=3).map(decode)
if coordinated:
    # Batched behind the rounds: before them, each part of the images would end with a batch of its own size.
    dataset = distribute(dataset, remainder_policy=ps.data.service.RemainderPolicy.ERROR).batch(batch)
else:
    dataset = distribute(dataset.batch(batch), max_outstanding_requests=2)
loader = ps.torch.DataLoader(dataset)
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
position = ps.torch.AllRanks(loader)
state = {"model": model.module, "data": position}
restores = os.path.exists(folder)
if restores:
    dcp.load(state, checkpoint_id=folder)
told = {"weights": model.module.weight.sum().item(), "paths": [], "losses": []}

def step(batch):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])
    loss.backward()
    optimizer.step()
    told["paths"] += [path.decode() for path in batch["path"]]
    told["losses"].append(loss.item())

if restores:
    with model.join():  # ranks of a shared job have different numbers of steps
        for batch in loader:
            step(batch)
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()
else:
    reader = iter(loader)
    for _ in range(steps):
        step(next(reader))
    dcp.save(state, checkpoint_id=folder)
    position.commit()
    told["weights"] = model.module.weight.sum().item()
    print(json.dumps(told), flush=True)
    for _ in range(2):
        next(reader)  # of which no state knows
    dist.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.images = pathlib.Path(cls.folder.name, "images")
        with open(DIGITS) as file:
            for number, row in zip(range(IMAGES), csv.reader(file)):
                pixels = np.array(row[:64], dtype=np.uint8).reshape(8, 8, 1) * 15
                place = cls.images / row[64].strip()
                place.mkdir(parents=True, exist_ok=True)
                ps.Picture(np.repeat(pixels, 3, axis=2)).save(place / f"{number}.png")

    def train(self, world, service, checkpoint, coordinated):
        """Returns the output of each of `world` ranks, each a process."""
        with tempfile.TemporaryDirectory() as place:
            ranks = []
            for rank in range(world):
                told = [rank, world, os.path.join(place, "store"), service, str(self.images), str(checkpoint),
                        coordinated, STEPS, BATCH]
                ranks.append(
                    subprocess.Popen([sys.executable, "-c", RANK, json.dumps(told)], stdout=subprocess.PIPE, text=True)
                )
            said = [rank.communicate()[0] for rank in ranks]
            ends = {rank.returncode for rank in ranks}
        return [json.loads(text.splitlines()[-1]) for text in said], ends

    def check(self, coordinated):
        with tempfile.TemporaryDirectory() as place:
            checkpoint = pathlib.Path(place, "checkpoint")
            with Cluster(2) as service:
                before, ends = self.train(4, service, checkpoint, coordinated)
            self.assertEqual(ends, {-9})
            self.assertEqual([len(told["paths"]) for told in before], [STEPS * BATCH] * 4)
            with Cluster(2) as service:
                after, ends = self.train(2, service, checkpoint, coordinated)
            self.assertEqual(ends, {0})
        self.assertEqual({told["weights"] for told in after}, {before[0]["weights"]})
        paths = sorted(path for told in before + after for path in told["paths"])
        self.assertEqual(paths, sorted(set(paths)))
        self.assertEqual(len(paths), IMAGES)
        first = np.mean([told["losses"][0] for told in before])
        last = np.mean([loss for told in after for loss in told["losses"][-10:]])
        self.assertLess(last, first / 2)
        return after

    def test_four_share_a_job_of_images_and_two_take_it_up(self):
        self.check(coordinated=False)

    def test_four_read_rounds_of_images_and_two_take_them_up(self):
        after = self.check(coordinated=True)
        self.assertEqual(len(after[0]["paths"]), len(after[1]["paths"]))


if __name__ == "__main__":
    unittest.main()
