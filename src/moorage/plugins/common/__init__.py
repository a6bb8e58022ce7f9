"""What several plugins share: resources in use, topology domains, spread constraints, victims."""
