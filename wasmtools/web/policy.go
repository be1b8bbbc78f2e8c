package web

// A Policy is what a door wants of the Mux. The zero value is the safe one.
type Policy struct {
	// Pages says which pages of other origins may make requests, beside those that the [Access] lists.
	Pages Pages
	// Unbounded leaves the body that [Exchange.Request] has as large as it comes, for a door that reads it with [Exchange.ReadBody] only.
	Unbounded bool
}

// Pages are the pages of other origins that may make requests of a door.
type Pages int

const (
	// PagesListed are those whose origins the Access lists.
	PagesListed Pages = iota
	// PagesRead are all, but with GET and HEAD only, and without seeing the answer: they may link to the door. It is for doors where
	// these methods do nothing but read.
	PagesRead
	// PagesAll are all: any page that somebody visits may make any request, and see the answer.
	PagesAll
)

// pages returns which pages may make the request. What a probe answers is of no use to any.
func (x *Exchange) pages() Pages {
	if x.at == nil {
		return PagesRead
	}
	return x.at.policy.Pages
}
