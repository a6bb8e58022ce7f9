"""What a version leaves behind is taken over by the one after it."""
