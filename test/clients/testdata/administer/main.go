// Command administer administers a server through the client that was generated from the document of its admin door, and fails where an answer is
// not what the document promises.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/test/clients/testdata/api"
)

func main() {
	if err := administer(os.Args[1], os.Getenv("TOKEN")); err != nil {
		fmt.Fprintln(os.Stderr, "administer:", err)
		os.Exit(1)
	}
}

func clientOf(url, token string) (*api.ClientWithResponses, error) {
	return api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
}

func administer(url, token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := clientOf(url, token)
	if err != nil {
		return err
	}
	for _, check := range []struct {
		name string
		run  func(context.Context, string, *api.ClientWithResponses) error
	}{
		{"look", look},
		{"tokens", tokens},
		{"switches", switches},
		{"explain", explain},
		{"audit", audit},
		{"who may look only", reader},
	} {
		if err := check.run(ctx, url, client); err != nil {
			return fmt.Errorf("%s: %w", check.name, err)
		}
	}
	return nil
}

func look(ctx context.Context, _ string, client *api.ClientWithResponses) error {
	status, err := client.StatusWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	all := true
	tools, err := client.ToolsWithResponse(ctx, &api.ToolsParams{All: &all})
	if err != nil {
		return err
	}
	if status.JSON200 == nil || !status.JSON200.Ready || tools.JSON200 == nil || len(tools.JSON200.Tools) != 1 || tools.JSON200.Tools[0].Path != "/shop/order" {
		return fmt.Errorf("got %s and %s", status.Body, tools.Body)
	}
	return nil
}

func tokens(ctx context.Context, url string, client *api.ClientWithResponses) error {
	made, err := client.TokensAddWithResponse(ctx, nil, api.TokensAddJSONRequestBody{Name: "ci", Scopes: &[]string{"shop/*"}})
	if err != nil {
		return err
	}
	if made.JSON200 == nil || made.JSON200.Secret == "" || made.JSON200.Token.Version == nil {
		return fmt.Errorf("got %s", made.Body)
	}
	version := `"` + *made.JSON200.Token.Version + `"`
	if tag := made.HTTPResponse.Header.Get("ETag"); tag != version {
		return fmt.Errorf("the ETag is %s, want %s", tag, version)
	}
	for want, expected := range map[int]string{http.StatusOK: version, http.StatusPreconditionFailed: `"999999"`} {
		changed, err := client.TokensScopesWithResponse(ctx, &api.TokensScopesParams{IfMatch: &expected}, api.TokensScopesJSONRequestBody{Name: "ci", Scopes: []string{"shop/order"}})
		if err != nil {
			return err
		}
		if changed.StatusCode() != want || (want != http.StatusOK) != (changed.JSONDefault != nil && changed.JSONDefault.Code == "changed") {
			return fmt.Errorf("If-Match %s: got %d %s", expected, changed.StatusCode(), changed.Body)
		}
	}
	its, err := clientOf(url, made.JSON200.Secret)
	if err != nil {
		return err
	}
	self, err := its.SelfWithResponse(ctx)
	if err != nil {
		return err
	}
	if self.JSON200 == nil || self.JSON200.Name != "ci" || !slices.Equal(self.JSON200.Scopes, []string{"shop/order"}) || self.JSON200.Token == nil {
		return fmt.Errorf("got %s", self.Body)
	}
	return nil
}

func switches(ctx context.Context, _ string, client *api.ClientWithResponses) error {
	reason := "it is measured"
	done, err := client.DisableWithResponse(ctx, nil, api.DisableJSONRequestBody{Names: []string{"shop/order"}, Reason: &reason})
	if err != nil {
		return err
	}
	all, err := client.SwitchesWithResponse(ctx)
	if err != nil {
		return err
	}
	if done.JSON200 == nil || !done.JSON200.Changed || all.JSON200 == nil || len(all.JSON200.Switches) != 1 || all.JSON200.Switches[0].Enabled || all.JSON200.Switches[0].Since.IsZero() {
		return fmt.Errorf("got %s and %s", done.Body, all.Body)
	}
	wrong, err := client.DisableWithResponse(ctx, nil, api.DisableJSONRequestBody{Names: []string{"shop/ordre"}})
	if err != nil {
		return err
	}
	if wrong.StatusCode() != http.StatusNotFound || wrong.JSONDefault == nil || wrong.JSONDefault.Code != "not_found" {
		return fmt.Errorf("a slip: got %d %s", wrong.StatusCode(), wrong.Body)
	}
	return nil
}

func explain(ctx context.Context, _ string, client *api.ClientWithResponses) error {
	why, err := client.ExplainWithResponse(ctx, &api.ExplainParams{Principal: "ci", Tool: "shop/order"})
	if err != nil {
		return err
	}
	if why.JSON200 == nil || why.JSON200.Allowed || len(why.JSON200.Rules) < 3 {
		return fmt.Errorf("got %s", why.Body)
	}
	missing, err := client.ExplainWithResponse(ctx, &api.ExplainParams{Tool: "shop/order"})
	if err != nil {
		return err
	}
	if missing.JSONDefault == nil || missing.JSONDefault.Code != "invalid_arguments" {
		return fmt.Errorf("nobody: got %s", missing.Body)
	}
	return nil
}

func audit(ctx context.Context, _ string, client *api.ClientWithResponses) error {
	all, err := client.AuditWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	verified, err := client.AuditVerifyWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	if all.JSON200 == nil || verified.JSON200 == nil || !verified.JSON200.Ok || all.JSON200.Last != verified.JSON200.Last {
		return fmt.Errorf("got %s and %s", all.Body, verified.Body)
	}
	for _, e := range all.JSON200.Entries {
		if e.Action == "tokens.add" && e.Target != nil && *e.Target == "ci" && e.Who != nil && *e.Who == "ann" {
			return nil
		}
	}
	return errors.New("it is not told that ann has made the token ci")
}

// reader makes a token that may look, and has it try to change something.
func reader(ctx context.Context, url string, client *api.ClientWithResponses) error {
	made, err := client.TokensAddWithResponse(ctx, nil, api.TokensAddJSONRequestBody{Name: "reader", Scopes: &[]string{"admin:read"}})
	if err != nil {
		return err
	}
	if made.JSON200 == nil {
		return fmt.Errorf("got %s", made.Body)
	}
	its, err := clientOf(url, made.JSON200.Secret)
	if err != nil {
		return err
	}
	listed, err := its.TokensListWithResponse(ctx)
	if err != nil {
		return err
	}
	refused, err := its.TokensRevokeWithResponse(ctx, nil, api.TokensRevokeJSONRequestBody{Name: "ci"})
	if err != nil {
		return err
	}
	if listed.JSON200 == nil || len(listed.JSON200.Tokens) != 3 || refused.StatusCode() != http.StatusForbidden || refused.JSONDefault == nil || refused.JSONDefault.Code != "forbidden" {
		return fmt.Errorf("got %s and %d %s", listed.Body, refused.StatusCode(), refused.Body)
	}
	return nil
}
