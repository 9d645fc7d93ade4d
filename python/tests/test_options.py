"""Tests what the plug-in says of options that it does not have, and of values that it cannot take."""

import unittest
import warnings

import torch
from gyre.optim import BasisRotation


def matrix():
    return torch.nn.Parameter(torch.ones(4, 4))


class Options(unittest.TestCase):
    def test_bad_settings_are_named(self):
        p = [torch.nn.Parameter(torch.ones(4, 4))]
        for settings, words in (({"source": "third"}, 'source is "third"'), ({"interval": 0}, "interval is 0"),
                                ({"betas": (0.9, 1.0)}, "betas has a 1"), ({"betas": (0.9,)}, "betas has 1 numbers"),
                                ({"eps": 0}, "eps is 0; give 1e-37"), ({"weight_decay": -1}, "weight_decay is -1"),
                                ({"lr": -1}, "lr is -1; give 0"), ({"lr": "fast"}, "lr='fast' has the wrong type"),
                                ({"delay": -1}, "delay=-1"),
                                ({"delay": float("inf")}, "delay=inf"), ({"delay": 1e18}, "delay=1e+18; give a number from 0 to 1000000000"),
                                ({"mean_delay": 1e10}, "mean_delay=10000000000.0; give"), ({"delay": float("nan")}, "delay=nan"),
                                ({"mean_delay": "x"}, "mean_delay='x'; give a number"),
                                ({"betas": 0.9}, "betas=0.9 has the wrong type"), ({"rotate": "no"}, "rotate='no'; give True"),
                                ({"max_skipped": -1}, "max_skipped=-1"), ({"max_skipped": "x"}, "max_skipped='x'"),
                                ({"row_blocks": 2.0}, "row_blocks=2.0; give a number of matrices"), ({"row_blocks": 3}, "row_blocks=3 does not divide the 4 rows"),
                                ({"row_blocks": [3, 2]}, "row_blocks=[3, 2] are not the 4 rows"),
                                ({"refresh": "stage-aware", "delay": 3}, "mean_delay is 0; give the mean"),
                                ({"covariance_beta": 1.0}, "covariance_beta is 1"),
                                ({"iteration_products": "fp8"}, 'iteration_products is "fp8"'),
                                ({"products": "fp8"}, 'products is "fp8"'), ({"long_sides": "long"}, 'long_sides is "long"'),
                                ({"transport": "yes"}, "transport='yes' has the wrong type"),
                                ({"refresh_lag": 10}, "refresh_lag is 10; give less than interval, 10"),
                                ({"look_ahead": 2}, "look_ahead is 2")):
            with self.assertRaises(ValueError) as raised:
                BasisRotation(p, **settings)
            self.assertIn(words, str(raised.exception))

    def test_an_unknown_option_names_the_one_that_is_meant(self):
        for option, words in (("frequency", "; use interval$"), ("num_stages", "; use mean_delay, which is"),
                              ("intervall", "; did you mean 'interval'?"), ("epsilon", "; did you mean 'eps'?"),
                              ("maximize", "; there are lr, betas, .*, interval, source, ")):
            with self.assertRaisesRegex(TypeError, f"unknown option '{option}'{words}"):
                BasisRotation([matrix()], **{option: 3})

    def test_a_key_of_a_group_that_is_meant_for_an_option_is_warned_of(self):
        for key, words in (("intervall", "did you mean 'interval'?"), ("num_stages", "use mean_delay"),
                           ("frequency", "use interval"), ("lookahead", "did you mean 'look_ahead'?"),
                           ("max_skipped", "use BasisRotation's argument"), ("maximize", "there is no such option")):
            with self.assertWarnsRegex(UserWarning, f"'{key}' in a group has no effect; {words}") as warned:
                BasisRotation([{"params": [matrix()], key: 3}])
            self.assertEqual(warned.filename, __file__, key)
            optimizer = BasisRotation([matrix()])
            with self.assertWarnsRegex(UserWarning, f"'{key}' in a group has no effect; {words}"):
                optimizer.add_param_group({"params": [matrix()], key: 3})
            self.assertEqual(optimizer.param_groups[1][key], 3)

    def test_keys_of_frameworks_are_not_warned_of(self):
        megatron = ("lr_mult", "wd_mult", "is_expert_parallel", "is_decoupled_lr", "pp_stage", "min_lr", "max_lr", "default_config")
        torch_own = ("initial_lr", "base_momentum", "max_momentum", "foreach", "fused", "param_names", "swa_lr",
                     "decoupled_weight_decay")
        others = ("lr_scale", "no_weight_decay", "weight_decay_mult", "layer_name", "moe", "random_ltd", "name", "bias_correction")
        off = ("amsgrad", "maximize")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            BasisRotation([{"params": [matrix()], **dict.fromkeys(megatron + torch_own + others, 1), **dict.fromkeys(off, False)}])

    def test_the_state_of_another_optimizer_is_refused(self):
        p = matrix()
        state = BasisRotation([p]).state_dict()
        del state["param_groups"][0]["interval"]
        state["state"] = {0: {}}
        with self.assertRaisesRegex(ValueError, "interval is missing"):
            BasisRotation([p]).load_state_dict(state)
        for other in (torch.optim.AdamW([p]), torch.optim.SGD([p], lr=0.1)):
            optimizer = BasisRotation([p], lr=0.25)
            with self.assertRaisesRegex(ValueError, "is missing from a group; is it another optimizer's"):
                optimizer.load_state_dict(other.state_dict())
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.25)

    def test_a_learning_rate_may_be_a_tensor(self):
        p, q = matrix(), matrix()
        rate = torch.tensor(0.25)
        optimizers = BasisRotation([p], lr=rate), BasisRotation([q], lr=0.25)
        for value in (0.25, 0.125):
            rate.fill_(value)
            optimizers[1].param_groups[0]["lr"] = value
            for parameter, optimizer in zip((p, q), optimizers):
                parameter.grad = torch.eye(4)
                optimizer.step()
        self.assertTrue(torch.equal(p, q))


if __name__ == "__main__":
    unittest.main()
