// Command namespace calls a tool through the client that was generated from the document of one namespace, and fails where an answer is not what
// that document promises.
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
		fmt.Fprintln(os.Stderr, "namespace:", err)
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
	answer, err := client.ShopOrderWithResponse(ctx, api.ShopOrderJSONRequestBody{Items: []api.ShopOrderItem{{Name: "tea"}}})
	switch {
	case err != nil:
		return err
	case answer.JSON200 == nil:
		return fmt.Errorf("a result: got %s %s", answer.Status(), answer.Body)
	case len(answer.JSON200.Items) != 1 || answer.JSON200.Items[0].Name != "tea" || answer.JSON200.Currency == nil || *answer.JSON200.Currency != "EUR":
		return fmt.Errorf("a result: got %s", answer.Body)
	}
	answer, err = client.ShopOrderWithResponse(ctx, api.ShopOrderJSONRequestBody{Items: []api.ShopOrderItem{}})
	if err == nil && answer.JSON422 == nil {
		err = fmt.Errorf("got %s %s", answer.Status(), answer.Body)
	}
	if err != nil {
		return fmt.Errorf("wrong arguments: %w", err)
	}
	return nil
}
