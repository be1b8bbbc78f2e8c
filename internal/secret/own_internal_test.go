package secret

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/personal"
)

// TestAdmitBytes checks that callers can't set more secrets than a start can read in time.
// Proves: Callers keep apart
func TestAdmitBytes(t *testing.T) {
	t.Parallel()
	s := NewStore(nil)
	longest := strings.Repeat("x", longestBrought)
	for i := range maxBroughtBytes / maxBroughtBytesCaller {
		root := personal.ID(fmt.Sprintf("issued+%d", i))
		for range maxBroughtBytesCaller / longestBrought {
			if err := s.Admit(root, longestBrought); err != nil {
				t.Fatalf("caller %d: %v", i, err)
			}
			s.brought = append(s.brought, broughtValue{root: root, value: longest})
		}
		if err := s.Admit(root, shortestBrought); !errors.Is(err, ErrTooMany) {
			t.Fatalf("caller %d, once its bytes are used up: got %v", i, err)
		}
	}
	if err := s.Admit("issued+last", shortestBrought); !errors.Is(err, ErrTooMany) {
		t.Errorf("once all bytes are used up: got %v", err)
	}
}
