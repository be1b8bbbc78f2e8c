package schemas

// These are the sizes of the parts of compiled schemas in bytes, as rounded by the allocator. A test compares their sums with the heap.
const (
	schemaSize      = 96
	targetSize      = 16
	nodeSize        = 112
	combinationSize = 128
	pointerSize     = 8
	choiceSize      = 64
	boundSize       = 48 + 80 // including the digits
	textSize        = 48
	arraySize       = 144
	objectSize      = 176
	memberSize      = 32
	dependentSize   = 40
	patternSize     = 1 << 10
	instructionSize = 96 // an instruction of a pattern
	valueSize       = 64 // a value of a default
)

// size returns how many bytes a node takes, without the nodes that it refers to.
func (n *node) size() int64 {
	size := int64(nodeSize)
	if len(n.typeList) > 1 {
		size += 16 * int64(cap(n.typeList))
	}
	if c := n.combination; c != noCombination {
		size += combinationSize + pointerSize*int64(cap(c.refs)+cap(c.allOf)+cap(c.anyOf)+cap(c.oneOf))
	}
	for _, c := range []*choice{n.constant, n.enum} {
		if c != nil {
			size += choiceSize + int64(len(c.values)+4*len(c.ends)+len(c.expected))
		}
	}
	if r := n.number; r != nil {
		for _, b := range []*bound{r.minimum, r.maximum, r.above, r.below, r.multipleOf} {
			if b != nil {
				size += boundSize
			}
		}
	}
	if n.text != nil {
		size += textSize + n.text.pattern.memory()
	}
	if n.array != nil {
		size += arraySize + pointerSize*int64(cap(n.array.prefix))
	}
	if r := n.object; r != nil {
		size += objectSize + memberSize*int64(cap(r.members)) + 4*int64(cap(r.byName)) + dependentSize*int64(cap(r.dependents))
		for _, p := range r.patterns {
			size += 2*pointerSize + p.pattern.memory()
		}
		for _, d := range r.dependents {
			size += 4 * int64(cap(d.required))
		}
	}
	if t := n.byDefault; t != nil {
		size += 24 + valueSize*int64(cap(t.Values)) + int64(len(t.Values[0].Text))
	}
	return size
}

// memory returns how many bytes a pattern takes, or 0 for nil.
func (p *pattern) memory() int64 {
	if p == nil {
		return 0
	}
	return patternSize + instructionSize*int64(p.size) + int64(len(p.text))
}
