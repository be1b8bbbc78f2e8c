// Command csv is a module with a tool that turns CSV into JSON and picks rows from it.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type query struct {
	CSV       string      `json:"csv" description:"The CSV text. A byte order mark, quoted cells and any line end are understood."`
	Delimiter string      `json:"delimiter" enum:"auto,comma,semicolon,tab,pipe" default:"auto" description:"The character between two cells; auto takes the one that fits the first line."`
	Header    bool        `json:"header" default:"true" description:"Whether the first row has the columns' names. Without one they are column_1, column_2 and so on."`
	Types     string      `json:"types" enum:"auto,text" default:"auto" description:"auto: a column whose cells are all numbers, or all true and false, has these as values and null for an empty cell. text: each cell stays text."`
	Where     []condition `json:"where" default:"[]" maxItems:"50" description:"Conditions that a row must meet, all of them."`
	Select    []string    `json:"select" default:"[]" maxItems:"1000" description:"The columns of the result, in this order; all where it is empty."`
	Sort      []key       `json:"sort" default:"[]" maxItems:"10" description:"By what the rows are sorted; as in the text where it is empty."`
	Offset    int         `json:"offset" default:"0" minimum:"0" description:"How many matching rows to skip."`
	Limit     int         `json:"limit" default:"100" minimum:"0" maximum:"10000" description:"How many rows to return at most."`
}

type condition struct {
	Column string          `json:"column"`
	Is     string          `json:"is" enum:"equal,not_equal,less,at_most,greater,at_least,contains,not_contains,starts_with,ends_with,one_of,empty,not_empty" description:"How the cell compares with value. Texts compare without regard to case."`
	Value  json.RawMessage `json:"value" required:"false" description:"A number, a text or a boolean; for one_of a list of them; none for empty and not_empty." examples:"\"Paris\""`
}

type key struct {
	Column     string `json:"column"`
	Descending bool   `json:"descending" default:"false"`
}

type answer struct {
	Columns    []column `json:"columns"`
	Rows       []object `json:"rows"`
	Total      int      `json:"total" description:"Rows in the text."`
	Matched    int      `json:"matched" description:"Rows that meet all conditions."`
	NextOffset *int     `json:"next_offset,omitempty" description:"Where to go on, if there is more."`
	Notes      []string `json:"notes,omitempty" description:"What looked odd in the text."`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type" enum:"number,boolean,text"`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "csv",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("query", "Turn CSV text into JSON rows: numbers and booleans are recognised, rows can be filtered, sorted and paged, columns picked.", ask,
			toolsrv.Example{
				Arguments: `{"csv": "city,people,capital\nParis,2102650,true\nLyon,522250,false\nNice,348085,false", "where": [{"column": "people", "is": "less", "value": 1000000}], "select": ["city"], "sort": [{"column": "people"}]}`,
				Result:    `{"columns": [{"name": "city", "type": "text"}], "rows": [{"city": "Nice"}, {"city": "Lyon"}], "total": 3, "matched": 2}`,
			},
			toolsrv.Example{
				Arguments: `{"csv": "name;born\n\"Lovelace; Ada\";1815\n", "limit": 1}`,
				Result:    `{"columns": [{"name": "name", "type": "text"}, {"name": "born", "type": "number"}], "rows": [{"name": "Lovelace; Ada", "born": 1815}], "total": 1, "matched": 1}`,
			},
		).With(toolsrv.Options{Title: "Query CSV", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

// maxOutput limits the rows of an answer in bytes: the server accepts 4 MiB by default.
const maxOutput = 3 << 20

// The steps that the tool's progress counts: reading, filtering, and sorting with all that follows.
const steps = 3

// often is the number of rows between reports of progress: a report takes longer than a row.
const often = 1000

func ask(c *toolsrv.Call, in query) (answer, error) {
	t, err := read(c, in)
	if err != nil {
		return answer{}, err
	}
	tests, err := t.compile(in.Where)
	if err != nil {
		return answer{}, err
	}
	order, err := t.sorting(in.Sort)
	if err != nil {
		return answer{}, err
	}
	picked, err := t.pick(in.Select)
	if err != nil {
		return answer{}, err
	}
	out := answer{Total: t.rows(), Notes: t.notes}
	for _, c := range picked {
		out.Columns = append(out.Columns, column{t.names[c], t.kinds[c].String()})
	}
	matched := make([]int32, 0, t.rows())
	for i := range t.rows() {
		if i%often == 0 {
			c.Progress(1+float64(i)/float64(t.rows()), steps, "filtering")
		}
		cells := t.row(i)
		if !slices.ContainsFunc(tests, func(meets func([]string) bool) bool { return !meets(cells) }) {
			matched = append(matched, int32(i))
		}
	}
	out.Matched = len(matched)
	c.Progress(2, steps, "sorting")
	if order != nil {
		slices.SortStableFunc(matched, order)
	}
	size := 0
	next := min(in.Offset, len(matched))
	for ; next < len(matched) && len(out.Rows) < in.Limit; next++ {
		r := t.object(picked, int(matched[next]))
		if size += len(r); size > maxOutput {
			break
		}
		out.Rows = append(out.Rows, r)
	}
	if next < len(matched) {
		if len(out.Rows) == 0 && in.Limit > 0 {
			return answer{}, &toolsrv.Error{Code: "row_too_large", Message: fmt.Sprintf("Row %d alone is larger than 3 MiB as JSON: select fewer columns.", next+1)}
		}
		out.NextOffset = &next
	}
	return out, nil
}

// sorting returns the order by the keys, or nil. Empty cells come last.
func (t *table) sorting(keys []key) (func(a, b int32) int, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	columns := make([]int, len(keys))
	for i, k := range keys {
		c, err := t.find(k.Column)
		if err != nil {
			return nil, err
		}
		columns[i] = c
	}
	return func(a, b int32) int {
		for i, c := range columns {
			x, y := t.row(int(a))[c], t.row(int(b))[c]
			if x == "" || y == "" {
				if n := cmp.Compare(len(y), len(x)); n != 0 {
					return n
				}
				continue
			}
			n := t.kinds[c].compare(x, y)
			if keys[i].Descending {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	}, nil
}

// pick returns the columns of these names, or all.
func (t *table) pick(names []string) ([]int, error) {
	var picked []int
	for _, name := range names {
		c, err := t.find(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(picked, c) {
			return nil, &toolsrv.Error{Code: "column_twice", Message: fmt.Sprintf("The column %q is selected twice: name it once.", name)}
		}
		picked = append(picked, c)
	}
	if len(names) == 0 {
		for c := range t.names {
			picked = append(picked, c)
		}
	}
	return picked, nil
}

// find returns the column with a name; if there is none, one whose name differs only in case or surrounding space.
func (t *table) find(name string) (int, error) {
	if c := slices.Index(t.names, name); c >= 0 {
		return c, nil
	}
	found := -1
	for c, n := range t.names {
		if strings.EqualFold(strings.TrimSpace(n), strings.TrimSpace(name)) {
			if found >= 0 {
				found = -1
				break
			}
			found = c
		}
	}
	if found >= 0 {
		return found, nil
	}
	return 0, &toolsrv.Error{Code: "no_such_column", Message: fmt.Sprintf("There is no column %q; the columns are %s.", name, list(t.names))}
}

// list returns names as a list for a message.
func list(names []string) string {
	const most = 20
	quoted := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		if len(n) > 100 {
			n = strings.ToValidUTF8(n[:100], "") + "…"
		}
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	return strings.Join(quoted, ", ")
}
