package figures

// Reduction adds up what encoding and de-duplicating the checkpoints of a history did.
type Reduction struct {
	Method       string `json:"method"`
	Chunk        int    `json:"chunk"`         // bytes; of de-duplication; 0: the method removes no duplicates
	Digest       string `json:"digest"`        // of de-duplication
	Compressor   string `json:"compressor"`    // of the host; "": none
	Encoded      int64  `json:"encoded"`       // checkpoints that were encoded on their way down
	Accumulated  int64  `json:"accumulated"`   // … of which a device encoded several at once
	Plain        int64  `json:"plain"`         // those that went as they were
	EncodedFrom  int64  `json:"encoded_from"`  // bytes of those encoded, before
	EncodedTo    int64  `json:"encoded_to"`    // … and after
	PlainBytes   int64  `json:"plain_bytes"`   // of those that went as they were
	EncodeTime   int64  `json:"encode_ns"`     // of flushes that encoded, the writing included
	EncoderTime  int64  `json:"encoder_ns"`    // … of which the disk waited for the encoder
	Decoded      int64  `json:"decoded"`       // loads and restores that decoded
	DecodedBytes int64  `json:"decoded_bytes"` // bytes of their regions
	DecodeTime   int64  `json:"decode_ns"`     // of these, the reading included
	Mended       int64  `json:"mended"`        // of those that decoded: those that took bytes of damaged objects from checkpoints in memory
	Differences  int64  `json:"differences"`   // of the encoded ones: those that refer to earlier ones
	FirstBytes   int64  `json:"first_bytes"`   // bytes of de-duplicated checkpoints that no earlier one had, before they were encoded
	MetaBytes    int64  `json:"meta_bytes"`    // of EncodedTo: metadata of de-duplication
}
