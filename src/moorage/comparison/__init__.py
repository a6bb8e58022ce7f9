"""Several configurations on the same scenario, side by side: `moorage compare`."""
