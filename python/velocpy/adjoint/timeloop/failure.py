"""What the graph of a time loop cannot do."""

from velocpy.errors import VelocError


class GraphError(VelocError):
    """The graph of a time loop is asked for what it cannot give.

    A second backward pass, a second derivative, or a gradient at parameters that were written since the forward sweep.
    """
