"""Constant state: what a layer keeps in place of keys and values, one size however long the text is.

Two parts: the last few inputs of a short convolution, in the cache's dtype, and a recurrent state that
the whole past is folded into, kept in float32 (transformers does so in every dtype). Knows configs as
dictionaries; which layers have a state is told by `layers`.
"""

from dataclasses import dataclass

from playground.core.config import Config, UnknownShape, count, count_if_any, is_count, part

RECURRENT_BYTES_PER_NUMBER = 4
"""float32, whatever the model's own dtype: an error in it would be carried on for ever."""


@dataclass(frozen=True, slots=True)
class State:
    """What one layer holds of one sequence from its first token on, in scalars."""

    kind: str
    conv_numbers: int = 0
    recurrent_numbers: int = 0

    def bytes(self, bytes_per_number: int) -> int:
        """Bytes of the state where the cache's scalars take `bytes_per_number`."""
        return self.conv_numbers * bytes_per_number + self.recurrent_numbers * RECURRENT_BYTES_PER_NUMBER


def state_of(config: Config) -> State | None:
    """The state of this config's recurrent layers; None where it names none. Raises `UnknownShape`."""
    if "linear_num_value_heads" in config:
        return _delta_net(config)
    if "linear_num_heads" in config:
        return _delta_attention(count(config, "linear_num_heads"), count(config, "linear_head_dim"), config)
    if inner := part(config, "linear_attn_config"):
        return _delta_attention(count(inner, "num_heads"), count(inner, "head_dim"), inner)
    if count_if_any(config, "state_size", "ssm_state_size", "mamba_d_state"):
        return _state_space(config)
    if "conv_L_cache" in config:
        return State("convolution", count(config, "hidden_size") * count(config, "conv_L_cache"))
    if "lru_width" in config:
        width, kernel = count(config, "lru_width"), count(config, "conv1d_width")
        return State("recurrent", width * (kernel - 1), width)
    return None


def _delta_net(config: Config) -> State:
    """Gated delta net (Yang et al. 2024, arXiv:2412.06464): a key by value matrix for each value head."""
    key, value = count(config, "linear_key_head_dim"), count(config, "linear_value_head_dim")
    values = count(config, "linear_num_value_heads")
    channels = 2 * count(config, "linear_num_key_heads") * key + values * value
    return State("linear", channels * count(config, "linear_conv_kernel_dim"), values * key * value)


def _delta_attention(heads: int, dim: int, config: Config) -> State:
    """Kimi delta attention (arXiv:2510.26692): as above, queries, keys and values of one width."""
    kernel = count(config, "linear_conv_kernel_dim", "short_conv_kernel_size")
    return State("linear", 3 * heads * dim * kernel, heads * dim * dim)


def _state_space(config: Config) -> State:
    """Mamba (Gu and Dao 2023, arXiv:2312.00752) and Mamba-2 (2024, arXiv:2405.21060).

    Every inner channel keeps `state` numbers; Mamba-2 also convolves the two projections of its groups.
    """
    state = count(config, "state_size", "ssm_state_size", "mamba_d_state")
    kernel = count(config, "conv_kernel", "mamba_d_conv")
    groups = count_if_any(config, "n_groups", "mamba_n_groups", "mamba_ngroups")
    inner = _inner(config, second=groups is not None)
    return State("state-space", (inner + 2 * (groups or 0) * state) * kernel, inner * state)


def _inner(config: Config, *, second: bool) -> int:
    """Channels of the state-space part; `second` is Mamba-2, whose heads give them."""
    dims = ("mamba_d_head", "mamba_head_dim", "mamba_headdim", "head_dim")
    dim = next((config[name] for name in dims if config.get(name) is not None), None)
    if second and dim != "auto":
        if not is_count(dim):
            raise UnknownShape("This config does not tell the width of its state-space heads.")
        return dim * count(config, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads")
    if (
        not second
        and config.get("model_type") in ("mamba", "falcon_mamba")
        and config.get("intermediate_size")
    ):
        return count(config, "intermediate_size")
    given = count_if_any(config, "mamba_d_ssm")
    return given or count(config, "hidden_size") * count(config, "expand", "mamba_expand")
