"""pyrevolve's storages and velocpy's, under the same adjoint."""
