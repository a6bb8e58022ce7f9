"""The admission plugins of a server beside those of `moorage.admission`, and the order of all."""
