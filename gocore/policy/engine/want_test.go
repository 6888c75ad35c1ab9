package engine

// These want every transfer of a direction.
var (
	anyDown = Want{Direction: Down, Link: AnyLink}
	anyUp   = Want{Direction: Up, Link: AnyLink}
)
