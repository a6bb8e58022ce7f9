from tests.apiserver.conftest import cluster as cluster
