"""The engines that evaluations compare, and the device that they work on."""
