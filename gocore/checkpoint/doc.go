// Package checkpoint holds what is known of a checkpoint beside the places of its copies: the layout of its regions, their checksums, its annotation. It
// verifies bytes against the checksums, also while they arrive.
package checkpoint
