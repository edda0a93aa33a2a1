# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The model of a gather under loss bounds: its bounds, exact tensors and loss shares, and how each
compensation treats a block that lacks contributions."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench.d"))
sys.dont_write_bytecode = True
try:
    import numpy
    import torch
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)
import gather_model as model  # noqa: E402

RANKS = 4
BLOCK = model.BLOCK_ELEMENTS


def network():
    torch.manual_seed(1)
    layers = (torch.nn.Linear(70, 100), torch.nn.Linear(100, 90), torch.nn.Linear(90, 7))
    return torch.nn.Sequential(*layers)


class AllLost:
    def lost(self, rank, count):
        return numpy.ones(count, dtype=bool)


def gather(bound, compensation, loss=None, net=None):
    net = net or network()
    buckets = model.buckets_of(net)
    bound_of = model.uniform_bounds(net, bound)
    return model.Gather(buckets, bound_of, compensation, loss or AllLost(), RANKS), buckets


def gradients(bucket, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-50, 50, (RANKS, bucket.elements), generator=generator).float()


class Layout(unittest.TestCase):
    def test_a_bucket_holds_the_last_parameter_first_and_gives_gradients_back(self):
        net = network()
        (bucket,) = model.buckets_of(net)
        self.assertEqual([t.name for t in bucket.tensors][:2], ["2.bias", "2.weight"])
        flat = torch.arange(bucket.elements).float()
        bucket.set_gradient(flat)
        self.assertTrue(torch.equal(bucket.gradient(), flat))
        self.assertEqual(net[2].bias.grad.tolist(), list(range(7)))

    def test_large_models_have_several_buckets(self):
        net = torch.nn.Sequential(*(torch.nn.Linear(600, 600) for _ in range(3)))
        buckets = model.buckets_of(net)
        self.assertEqual(len(buckets), 2)
        self.assertGreaterEqual(4 * buckets[0].elements, model.FIRST_BUCKET_BYTES)


class Bounds(unittest.TestCase):
    def test_no_tensor_lacks_more_than_its_bound_of_any_rank(self):
        for bound in (0.05, 0.2, 0.5):
            net = network()
            one, (bucket,) = gather(bound, "zero", net=net)
            for iteration in range(model.STRICT_ROUNDS, model.STRICT_ROUNDS + 20):
                one._rounds = iteration
                present = one._present(bucket, one._allowed[0])
                for tensor in bucket.tensors:
                    blocks = list(tensor.blocks)
                    for rank in range(RANKS):
                        missing = sum(not present[rank, b * BLOCK].item() for b in blocks)
                        self.assertLessEqual(missing, bound * len(blocks))
            self.assertGreater(one.missing_share, bound / 3)
            self.assertLessEqual(one.missing_share, bound)

    def test_exact_tensors_and_strict_rounds_lack_nothing(self):
        one, (bucket,) = gather(0.5, "zero")
        data = gradients(bucket)
        self.assertTrue(torch.equal(one.mean(0, data, 0), data.mean(0)))
        one, (bucket,) = gather(0, "zero")
        self.assertTrue(torch.equal(one.mean(0, data, 1000), data.mean(0)))
        self.assertEqual(one.missing_count, 0)

    def test_what_is_missing_rotates(self):
        one, (bucket,) = gather(0.2, "zero")
        seen = set()
        for number in range(30):
            one._rounds = number
            present = one._present(bucket, one._allowed[0])
            seen |= {b for b in range(bucket.blocks) if not present[0, b * BLOCK].item()}
        self.assertGreater(len(seen), bucket.blocks / 2)

    def test_plot_keeps_the_ends_exact_and_the_budget(self):
        torch.manual_seed(1)
        net = torch.nn.Sequential(*(torch.nn.Linear(50, 50) for _ in range(7)))
        found = model.plot_bounds(net, 0.1)
        self.assertEqual(found["0.weight"], 0)
        self.assertEqual(found["6.bias"], 0)
        inner = [found[f"{i}.weight"] for i in range(1, 6)]
        self.assertEqual(inner, sorted(inner, reverse=True))
        self.assertEqual(len(set(inner)), 5)
        self.assertAlmostEqual(model.bound_in_all(net, found), 0.1)

    def test_a_budget_that_not_all_can_take_goes_to_the_others(self):
        sizes = {"a": 10, "b": 100}
        found = model.share_out(sizes, {"a": 9.0, "b": 1.0}, 11)
        self.assertEqual(found, {"a": model.MAX_BOUND, "b": 0.06})
        found = model.share_out(sizes, {"a": 9.0, "b": 1.0}, 100)
        self.assertEqual(found, {"a": model.MAX_BOUND, "b": model.MAX_BOUND})

    def test_thresholds_are_those_of_plot(self):
        for count in range(1, 20):
            found = model.thresholds_of(count)
            self.assertEqual(found, sorted(found, reverse=True))
            self.assertGreaterEqual(found[-1], 0)
            if count % 2:
                self.assertAlmostEqual(sum(found), 1)
        for got, wanted in zip(model.thresholds_of(3), (0.6, 1 / 3, 0.2 / 3)):
            self.assertAlmostEqual(got, wanted)


class Losses(unittest.TestCase):
    def test_each_process_loses_its_share(self):
        for name, process in model.LOSSES.items():
            loss = process(0.1, RANKS, numpy.random.RandomState(1))
            shares = [
                numpy.mean([loss.lost(rank, 1000).mean() for _ in range(100)])
                for rank in range(RANKS)
            ]
            self.assertAlmostEqual(sum(shares) / RANKS, 0.1, delta=0.01, msg=name)
            if name == "one-sided":
                self.assertEqual(shares[1:], [0, 0, 0])

    def test_bursts_are_longer_than_chance(self):
        def mean_run(process):
            lost = process(0.1, 1, numpy.random.RandomState(1)).lost(0, 200_000)
            begins = lost[1:] & ~lost[:-1]
            return lost.sum() / begins.sum()

        self.assertGreater(mean_run(model.BurstyLoss), 1.5 * mean_run(model.RandomLoss))


class Compensation(unittest.TestCase):
    def test_zero_shrinks_and_rescale_does_not(self):
        half = model.RandomLoss(0.5, RANKS, numpy.random.RandomState(1))
        for compensation in ("zero", "rescale"):
            one, (bucket,) = gather(0.5, compensation, half)
            same = torch.ones(RANKS, bucket.elements)
            found = one.mean(0, same, 1000)
            if compensation == "zero":
                self.assertAlmostEqual(found.mean().item(), 1 - one.missing_share, places=2)
                self.assertGreater(one.missing_share, 0.2)
            else:  # 1, or 0 where no contribution came
                self.assertTrue(set(found.tolist()) <= {0.0, 1.0})
                self.assertGreater(found.mean().item(), 0.9)

    def test_carry_loses_nothing(self):
        one, (bucket,) = gather(0.5, "carry")
        offered, delivered = torch.zeros(bucket.elements), torch.zeros(bucket.elements)
        for number in range(20):
            data = gradients(bucket, number)
            offered += data.sum(0)
            delivered += RANKS * one.mean(0, data, 1000 + number)
            kept = one._residual[0].sum(0)
            self.assertTrue(torch.equal(delivered + kept, offered))
        self.assertGreater(one.missing_count, 0)

    def test_the_error_is_that_of_the_mean(self):
        one, (bucket,) = gather(0.5, "zero")
        data = gradients(bucket)
        found = one.mean(0, data, 1000)
        exact = data.mean(0)
        expected = (found - exact).square().sum() / exact.square().sum()
        self.assertAlmostEqual(one.error, expected.item(), places=5)


class WireTypes(unittest.TestCase):
    def test_rounding_is_that_of_the_type(self):
        rows = torch.tensor([[1.001, 3.003, -100.3]])
        self.assertEqual(model.rounded(rows, "bf16").tolist(), [[1.0, 3.0, -100.5]])
        halves = model.rounded(rows, "fp16")
        self.assertLess((halves - rows).abs().max(), 100.3 * 2**-11)
        self.assertGreater((halves - rows).abs().max(), 0)
        wide = torch.cat([torch.full((BLOCK,), 127.0), torch.tensor([1.27, -0.004])])[None]
        wide[0, 5] = 0.4
        found = model.rounded(wide, "int8")
        self.assertEqual(found[0, 5], 0)  # its block has a step of 1, the next one of 0.01
        self.assertTrue(torch.allclose(found[0, BLOCK:], torch.tensor([1.27, 0.0])))
        self.assertEqual(model.rounded(torch.zeros(2, 3), "int8").sum(), 0)

    def test_carry_brings_what_was_rounded_off(self):
        net = network()
        buckets = model.buckets_of(net)
        exact = model.uniform_bounds(net, 0)
        offs = {}
        for compensation in ("zero", "carry"):
            rounds = model.Gather(buckets, exact, compensation, None, RANKS, "int8")
            gradients = torch.randn(RANKS, buckets[0].elements, generator=torch.manual_seed(2))
            total = sum(rounds.mean(0, gradients, i) for i in range(50))
            offs[compensation] = (total - 50 * gradients.mean(0)).abs().max().item()
        step = gradients.abs().max().item() / model.LARGEST_INT8
        self.assertLess(offs["carry"], 2 * step)
        self.assertGreater(offs["zero"], 10 * step)


if __name__ == "__main__":
    unittest.main()
