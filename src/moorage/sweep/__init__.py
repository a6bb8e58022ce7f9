"""Many simulations: configurations x scenarios x seeds, on one machine or many: `moorage sweep`."""
