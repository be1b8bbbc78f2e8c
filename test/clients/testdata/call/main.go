// Command call calls tools through the client that was generated from their document, and fails where an answer is
// not what the document promises.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/test/clients/testdata/api"
)

func main() {
	if err := call(os.Args[1], os.Getenv("TOKEN")); err != nil {
		fmt.Fprintln(os.Stderr, "call:", err)
		os.Exit(1)
	}
}

func call(url, token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}
	for _, check := range []struct {
		name string
		run  func(context.Context, *api.ClientWithResponses) error
	}{
		{"an example", example},
		{"a result", order},
		{"wrong arguments", wrongArguments},
		{"a tool's error", refuse},
	} {
		if err := check.run(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", check.name, err)
		}
	}
	stranger, err := api.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	if err := noToken(ctx, stranger); err != nil {
		return fmt.Errorf("no token: %w", err)
	}
	return nil
}

func example(ctx context.Context, client *api.ClientWithResponses) error {
	answer, err := client.MathAddWithResponse(ctx, api.MathAddJSONRequestBody{A: 2, B: 3})
	if err != nil {
		return err
	}
	if answer.JSON200 == nil || *answer.JSON200 != 5 {
		return fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	}
	return nil
}

func order(ctx context.Context, client *api.ClientWithResponses) error {
	due := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	two := 2
	answer, err := client.ShopOrderWithResponse(ctx, api.ShopOrderJSONRequestBody{
		Items: []api.ShopOrderItem{{Name: "tea", Count: &two, Parts: &[]api.ShopOrderItem{{Name: "leaf"}}}},
		Due:   &due,
	})
	if err != nil {
		return err
	}
	got := answer.JSON200
	switch {
	case got == nil:
		return fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	case len(got.Items) != 1 || got.Items[0].Name != "tea" || *got.Items[0].Count != 2:
		return fmt.Errorf("items: got %s", answer.Body)
	case got.Items[0].Parts == nil || len(*got.Items[0].Parts) != 1 || (*got.Items[0].Parts)[0].Count == nil || *(*got.Items[0].Parts)[0].Count != 1:
		return fmt.Errorf("the default of count is missing: got %s", answer.Body)
	case got.Currency == nil || *got.Currency != "EUR":
		return fmt.Errorf("the default of currency is missing: got %s", answer.Body)
	case got.Due == nil || !got.Due.Equal(due):
		return fmt.Errorf("due: got %s", answer.Body)
	}
	return nil
}

func wrongArguments(ctx context.Context, client *api.ClientWithResponses) error {
	answer, err := client.ShopOrderWithResponse(ctx, api.ShopOrderJSONRequestBody{Items: []api.ShopOrderItem{{Name: ""}}})
	if err != nil {
		return err
	}
	if answer.JSON422 == nil {
		return fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	}
	invalid, err := answer.JSON422.AsHTTPValidationError()
	if err != nil {
		return err
	}
	if len(invalid.Detail) != 1 || invalid.Detail[0].Type != "string_too_short" || len(invalid.Detail[0].Loc) != 4 {
		return fmt.Errorf("got %s", answer.Body)
	}
	return nil
}

func refuse(ctx context.Context, client *api.ClientWithResponses) error {
	answer, err := client.ShopRefuseWithResponse(ctx, api.ShopRefuseJSONRequestBody{})
	if err != nil {
		return err
	}
	failed := answer.JSONDefault
	if answer.StatusCode() != http.StatusConflict || failed == nil || failed.Detail == "" || failed.Error == nil || failed.Error.Code == nil || *failed.Error.Code != "out_of_stock" {
		return fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	}
	return nil
}

func noToken(ctx context.Context, client *api.ClientWithResponses) error {
	answer, err := client.ShopRefuseWithResponse(ctx, api.ShopRefuseJSONRequestBody{})
	if err != nil {
		return err
	}
	if answer.JSON401 == nil || answer.JSON401.Detail != "Invalid or missing bearer token" {
		return fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	}
	return nil
}
