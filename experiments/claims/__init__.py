"""The published figures, as claims: data that the experiments offer to `zoo reproduce`."""
