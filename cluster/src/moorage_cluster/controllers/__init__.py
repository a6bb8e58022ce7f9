"""Controllers: each brings the cluster a little closer to what some objects ask for; one file each."""
