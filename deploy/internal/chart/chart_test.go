package chart_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	ours "github.com/toolsrv/toolsrv/deploy/internal/chart"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

var update = flag.Bool("update", false, "write the plain manifests anew")

const (
	folder    = "../../helm/toolsrv"
	manifests = "../../kubernetes/toolsrv.yaml"
)

func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns what `helm template toolsrv` prints with values, object by object, without the notes.
func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "toolsrv", Namespace: "default", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for name, text := range files {
		base := strings.TrimSuffix(filepath.Base(name), ".yaml")
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			objects[base] = strings.Trim(text, "\n") + "\n"
		}
	}
	return objects, nil
}

// A serviceMonitor has the fields that the chart sets. The type is the Prometheus operator's, and not in Kubernetes.
type serviceMonitor struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Spec       serviceMonitorFor `json:"spec"`
}

type serviceMonitorFor struct {
	Selector  map[string]map[string]string `json:"selector"`
	Endpoints []struct {
		Port     string `json:"port"`
		Path     string `json:"path"`
		Interval string `json:"interval"`

		Authorization struct {
			Credentials corev1.SecretKeySelector `json:"credentials"`
		} `json:"authorization"`
	} `json:"endpoints"`
}

// A prometheusRule is one of its rules.
type prometheusRule struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// decode decodes each object into Kubernetes' own type. A member that the type doesn't have is an error.
func decode(objects map[string]string) (map[string]any, error) {
	decoded := map[string]any{}
	for name, text := range objects {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var into any
		switch head.APIVersion + " " + head.Kind {
		case "apps/v1 Deployment":
			into = &appsv1.Deployment{}
		case "v1 Service":
			into = &corev1.Service{}
		case "v1 ConfigMap":
			into = &corev1.ConfigMap{}
		case "v1 Secret":
			into = &corev1.Secret{}
		case "v1 ServiceAccount":
			into = &corev1.ServiceAccount{}
		case "policy/v1 PodDisruptionBudget":
			into = &policyv1.PodDisruptionBudget{}
		case "networking.k8s.io/v1 Ingress":
			into = &networkingv1.Ingress{}
		case "autoscaling/v2 HorizontalPodAutoscaler":
			into = &autoscalingv2.HorizontalPodAutoscaler{}
		case "networking.k8s.io/v1 NetworkPolicy":
			into = &networkingv1.NetworkPolicy{}
		case "monitoring.coreos.com/v1 ServiceMonitor":
			into = &serviceMonitor{}
		case "monitoring.coreos.com/v1 PrometheusRule":
			into = &prometheusRule{}
		default:
			return nil, fmt.Errorf("%s: an unknown kind %q of %q", name, head.Kind, head.APIVersion)
		}
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
		}
		decoded[name] = into
	}
	return decoded, nil
}

// restricted returns what Kubernetes' restricted profile forbids in a pod.
func restricted(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

// TestDefault checks that the chart with its default values is what a cluster and its operators expect.
func TestDefault(t *testing.T) {
	t.Parallel()
	objects, err := render(load(t, folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decode(objects)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"configmap", "deployment", "networkpolicy", "poddisruptionbudget", "service", "serviceaccount"}
	if got := slices.Sorted(maps.Keys(decoded)); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	d := decoded["deployment"].(*appsv1.Deployment)
	if text := restricted(t, d); text != "" {
		t.Errorf("the restricted profile forbids the pod: %s", text)
	}
	pod := d.Spec.Template.Spec
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod has a token for the cluster")
	}
	if *pod.TerminationGracePeriodSeconds < 45 {
		t.Errorf("the pod has %d s to stop, want 45", *pod.TerminationGracePeriodSeconds)
	}
	if max := d.Spec.Strategy.RollingUpdate.MaxUnavailable; max.IntValue() != 0 {
		t.Errorf("during a rollout %v servers are missing, want none", max)
	}
	for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
		if !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("container %s may write to its image", c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s has no memory limit", c.Name)
		}
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		service := decoded["service"].(*corev1.Service)
		if d.Spec.Template.Labels[k] != v || service.Spec.Selector[k] != v {
			t.Errorf("label %s: pods have %q, the service selects %q, the deployment %q", k, d.Spec.Template.Labels[k], service.Spec.Selector[k], v)
		}
	}
}

// TestManifests checks that the plain manifests are what the chart renders.
func TestManifests(t *testing.T) {
	t.Parallel()
	objects, err := render(load(t, folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := plain(objects)
	if *update {
		if err := os.WriteFile(manifests, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Errorf("%s is not what the chart renders: go test ./internal/chart -run TestManifests -update", manifests)
	}
}

// plain returns objects as one file of manifests. Those that others need come first.
func plain(objects map[string]string) string {
	order := []string{"serviceaccount", "configmap", "networkpolicy", "poddisruptionbudget", "service", "deployment"}
	documents := []string{"# What the chart in deploy/helm/toolsrv renders with its default values. A test compares; go test -update writes it anew.\n"}
	for _, name := range order {
		documents = append(documents, objects[name])
	}
	return strings.Join(documents, "---\n")
}

// TestSecretExample: the example is a valid Secret, but the server refuses its token, so that nobody uses the one from our repository.
func TestSecretExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../kubernetes/secret.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decode(map[string]string{"secret": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	s := decoded["secret"].(*corev1.Secret)
	values, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := values.Values["tokens"].(map[string]any)["secret"]; s.Name != want {
		t.Errorf("the Secret is called %q, want %q as in the chart", s.Name, want)
	}
	if token := strings.TrimSpace(s.StringData["tokens"]); !strings.Contains(token, " ") {
		t.Errorf("the server takes the token %q, which everybody can read in the example", token)
	}
}

// TestLint checks the chart with helm lint.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, m := range lint.RunAll(folder, nil, "default").Messages {
		if !strings.Contains(m.Error(), "icon is recommended") {
			t.Error(m)
		}
	}
}

// TestEveryValue changes the values of the chart one at a time. The objects must change, contain what the table says, and be valid for Kubernetes,
// read strictly and under its restricted profile.
func TestEveryValue(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("ab", 32)
	table := map[string]struct {
		value any
		want  string // in an object
	}{
		"image.repository":                   {"registry.example.com/tools", "image: registry.example.com/tools:0.0.0\n"},
		"image.tag":                          {"1.2.3", "image: ghcr.io/toolsrv/toolsrv:1.2.3\n"},
		"image.digest":                       {digest, "image: ghcr.io/toolsrv/toolsrv@" + digest + "\n"},
		"image.pullPolicy":                   {"Always", "imagePullPolicy: Always\n"},
		"imagePullSecrets":                   {[]any{"pull"}, "imagePullSecrets:\n        - name: pull\n"},
		"nameOverride":                       {"mine", "app.kubernetes.io/name: mine\n"},
		"fullnameOverride":                   {"all-mine", "name: all-mine\n"},
		"replicas":                           {5, "replicas: 5\n"},
		"config":                             {"title = \"Ours\"\n[server]\naddress = \":8000\"\n", "    title = \"Ours\"\n    [server]\n"},
		"files":                              {map[string]any{"toolsrv.lock": "# <a> \"b\"\nc: é\n"}, `  toolsrv.lock: "# \u003ca\u003e \"b\"\nc: é\n"` + "\n"},
		"credentials":                        {map[string]any{"nats": "toolsrv-nats"}, "secretName: toolsrv-nats\n            defaultMode: 0400\n"},
		"tokens.secret":                      {"ours", "secretName: ours\n"},
		"tools.configMap":                    {"scripts", "configMap:\n            name: scripts\n"},
		"tools.claim":                        {"tools", "claimName: tools\n            readOnly: true\n"},
		"tools.image":                        {"example.com/tools:1", "image:\n            reference: example.com/tools:1\n"},
		"secrets":                            {"keys", "mountPath: /run/secrets/tools\n"},
		"state.claim":                        {"state", "claimName: state\n"}, // with replicas: 1, below
		"cache.size":                         {"", ""},
		"service.type":                       {"LoadBalancer", "type: LoadBalancer\n"},
		"service.port":                       {8080, "port: 8080\n"},
		"service.annotations":                {map[string]any{"a": "1"}, "annotations:\n    a: \"1\"\n"},
		"ingress.enabled":                    {true, "kind: Ingress\n"}, // with a host, below
		"ingress.className":                  {"nginx", "ingressClassName: nginx\n"},
		"ingress.host":                       {"tools.example.com", "tls:\n    - hosts: [\"tools.example.com\"]\n  rules:\n    - host: \"tools.example.com\"\n"},
		"ingress.tlsSecret":                  {"certificate", "secretName: certificate\n"},
		"ingress.annotations":                {map[string]any{"e": "5"}, "annotations:\n    e: \"5\"\n"},
		"autoscaling.enabled":                {true, "kind: HorizontalPodAutoscaler\n"},
		"autoscaling.min":                    {3, "minReplicas: 3\n"},
		"autoscaling.max":                    {30, "maxReplicas: 30\n"},
		"autoscaling.cpu":                    {50, "averageUtilization: 50\n"},
		"resources.requests.cpu":             {"2", "cpu: \"2\"\n"},
		"resources.requests.memory":          {"300Mi", "memory: 300Mi\n"},
		"resources.limits.memory":            {"3Gi", "memory: 3Gi\n"},
		"terminationGracePeriodSeconds":      {90, "terminationGracePeriodSeconds: 90\n"},
		"podDisruptionBudget.enabled":        {false, ""},
		"podDisruptionBudget.maxUnavailable": {"50%", "maxUnavailable: 50%\n"},
		"networkPolicy.enabled":              {false, ""},
		"networkPolicy.from":                 {[]any{map[string]any{"namespaceSelector": map[string]any{}}}, "- namespaceSelector: {}\n"},
		"networkPolicy.to": {[]any{map[string]any{"to": []any{map[string]any{"ipBlock": map[string]any{"cidr": "0.0.0.0/0"}}}}},
			"cidr: 0.0.0.0/0\n"},
		"serviceMonitor.enabled":             {true, "kind: ServiceMonitor\n"},
		"serviceMonitor.interval":            {"10s", "interval: 10s\n"}, // enabled, below
		"serviceMonitor.labels":              {map[string]any{"release": "prometheus"}, "release: prometheus\n"},
		"prometheusRule.enabled":             {true, "kind: PrometheusRule\n"},
		"prometheusRule.labels":              {map[string]any{"release": "prometheus"}, "release: prometheus\n"},
		"dashboard.enabled":                  {true, "    grafana_dashboard: \"1\"\ndata:\n  toolsrv.json: |\n    {\n"},
		"dashboard.labels.grafana_dashboard": {"yes", "grafana_dashboard: \"yes\"\n"},
		"serviceAccount.name":                {"theirs", "serviceAccountName: theirs\n"},
		"serviceAccount.annotations":         {map[string]any{"b": "2"}, "annotations:\n    b: \"2\"\n"},
		"env":                                {[]any{map[string]any{"name": "KEY", "value": "v"}}, "- name: KEY\n              value: v\n"},
		"podAnnotations":                     {map[string]any{"c": "3"}, "c: \"3\"\n"},
		"podLabels":                          {map[string]any{"d": "4"}, "d: \"4\"\n"},
		"nodeSelector":                       {map[string]any{"disk": "ssd"}, "nodeSelector:\n        disk: ssd\n"},
		"tolerations":                        {[]any{map[string]any{"operator": "Exists"}}, "- operator: Exists\n"},
		"affinity":                           {map[string]any{"nodeAffinity": map[string]any{}}, "nodeAffinity: {}\n"},
		"topologySpread":                     {false, ""},
		"priorityClassName":                  {"high", "priorityClassName: high\n"},
	}
	outside, growing := map[string]any{"ingress": map[string]any{"enabled": true, "host": "a.example.com"}}, set("autoscaling.enabled", true)
	besides := map[string]map[string]any{
		"ingress.enabled":     set("ingress.host", "a.example.com"),
		"ingress.className":   outside,
		"ingress.host":        outside,
		"ingress.tlsSecret":   outside,
		"ingress.annotations": outside,
		"autoscaling.min":     growing,
		"autoscaling.max":     growing,
		"autoscaling.cpu":     growing,

		"state.claim":             {"replicas": 1},
		"serviceMonitor.interval": {"serviceMonitor": map[string]any{"enabled": true}},
		"serviceMonitor.labels":   {"serviceMonitor": map[string]any{"enabled": true}},
		"prometheusRule.labels":   {"prometheusRule": map[string]any{"enabled": true}},

		"dashboard.labels.grafana_dashboard": {"dashboard": map[string]any{"enabled": true}},
	}
	c := load(t, folder)
	for _, name := range leaves("", c.Values) {
		if _, found := table[name]; !found {
			t.Errorf("value %s is not in the table", name)
		}
	}
	if len(leaves("", c.Values)) < len(table) {
		t.Errorf("the chart has %d values, the table %d", len(leaves("", c.Values)), len(table))
	}
	for name, change := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := set(name, change.value)
			before, err := render(load(t, folder), besides[name])
			if err != nil {
				t.Fatal(err)
			}
			after, err := render(load(t, folder), loader.MergeMaps(besides[name], values))
			if err != nil {
				t.Fatal(err)
			}
			if maps.Equal(before, after) {
				t.Error("no object changes")
			}
			if all := plainAll(after); !strings.Contains(all, change.want) {
				t.Errorf("no %q in\n%s", change.want, all)
			}
			decoded, err := decode(after)
			if err != nil {
				t.Fatal(err)
			}
			if text := restricted(t, decoded["deployment"].(*appsv1.Deployment)); text != "" {
				t.Errorf("the restricted profile forbids the pod: %s", text)
			}
		})
	}
}

func plainAll(objects map[string]string) string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all.WriteString(objects[name])
	}
	return all.String()
}

// leaves returns the names of all values that are not tables, and of empty tables.
func leaves(prefix string, values map[string]any) []string {
	var names []string
	for key, value := range values {
		if table, ok := value.(map[string]any); ok && len(table) > 0 {
			names = append(names, leaves(prefix+key+".", table)...)
		} else {
			names = append(names, prefix+key)
		}
	}
	return names
}

// set returns values with one of them set.
func set(name string, value any) map[string]any {
	head, rest, nested := strings.Cut(name, ".")
	if nested {
		return map[string]any{head: set(rest, value)}
	}
	return map[string]any{head: value}
}

// TestRefused: wrong values are refused, with an error that names the value.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]any
		want   string
	}{
		"a misspelt name":               {set("replica", 3), "'replica'"},
		"a misspelt name inside":        {set("image.tags", "1"), "'tags'"},
		"a number as text":              {set("replicas", "3"), "'/replicas': got string, want integer"},
		"less than none":                {set("replicas", -1), "'/replicas': minimum"},
		"a port":                        {set("service.port", 70000), "'/service/port': maximum"},
		"too little time to stop":       {set("terminationGracePeriodSeconds", 30), "'/terminationGracePeriodSeconds': minimum"},
		"a short digest":                {set("image.digest", "sha256:abcd"), "'/image/digest'"},
		"no Secret":                     {set("tokens.secret", ""), "'/tokens/secret'"},
		"an invalid name":               {set("tokens.secret", "Our Tokens"), "'/tokens/secret'"},
		"a size":                        {set("cache.size", "much"), "'/cache/size'"},
		"a policy":                      {set("image.pullPolicy", "Sometimes"), "'/image/pullPolicy'"},
		"a string for a switch":         {set("networkPolicy.enabled", "yes"), "'/networkPolicy/enabled'"},
		"no configuration":              {set("config", ""), "'/config'"},
		"state in a claim, two servers": {set("state.claim", "state"), "set replicas to 1"},
		"state that grows":              {map[string]any{"state": map[string]any{"claim": "state"}, "replicas": 1, "autoscaling": map[string]any{"enabled": true}}, "without autoscaling"},
		"a minimum above the maximum":   {set("autoscaling", map[string]any{"enabled": true, "min": 3, "max": 2}), "it is less than autoscaling.min"},
		"an ingress without a host":     {set("ingress.enabled", true), "ingress.host: name the host"},
		"a host with a path":            {set("ingress.host", "example.com/tools"), "'/ingress/host'"},
		"another toolsrv.toml":          {set("files", map[string]any{"toolsrv.toml": ""}), "'/files/toolsrv.toml': false schema"},
		"a file name with a folder":     {set("files", map[string]any{"keys/acme.pub": ""}), "'/files': additional properties 'keys/acme.pub' not allowed"},
		"a file that is not a string":   {set("files", map[string]any{"a": 1}), "'/files/a': got number, want string"},
		"a reserved folder":             {set("credentials", map[string]any{"tools": "a"}), "'/credentials/tools': false schema"},
		"a folder outside":              {set("credentials", map[string]any{"../etc": "a"}), "'/credentials': additional properties '../etc' not allowed"},
		"credentials of nobody":         {set("credentials", map[string]any{"nats": ""}), "'/credentials/nats'"},
		"tools from two places":         {set("tools", map[string]any{"configMap": "a", "claim": "b"}), "set one of configMap, claim and image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := render(load(t, folder), c.values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d objects and %v, want %q in the error", len(objects), err, c.want)
			}
		})
	}
}

// TestMake packs the chart of a commit: the package is the same each time, Helm loads it, and it renders the manifests of the release.
func TestMake(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.2.3", "0.0.0-20260102150405-abcdefabcdef", "1.2.4-0.20260102150405-abcdefabcdef+dirty"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var made [2]map[string][]byte
			for i := range made {
				root := filepath.Join(t.TempDir(), strings.Repeat("x", i+1))
				if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("../..")); err != nil {
					t.Fatal(err)
				}
				r := &release.Release{Root: root, Out: t.TempDir(), Version: version, Time: time.Unix(1_700_000_000, 0).UTC()}
				if err := ours.Make(context.Background(), r); err != nil {
					t.Fatal(err)
				}
				made[i] = map[string][]byte{}
				for _, name := range []string{"toolsrv_" + version + "_helm.tgz", "toolsrv_" + version + "_kubernetes.yaml"} {
					content, err := os.ReadFile(filepath.Join(r.Out, name))
					if err != nil {
						t.Fatal(err)
					}
					made[i][name] = content
				}
			}
			if !maps.EqualFunc(made[0], made[1], bytes.Equal) {
				t.Error("two packages of the same chart differ")
			}
			c, err := loader.LoadArchive(bytes.NewReader(made[0]["toolsrv_"+version+"_helm.tgz"]))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err != nil || c.Metadata.Version != version || c.Metadata.AppVersion != version {
				t.Errorf("the chart is %s of %s (%v), want %s", c.Metadata.Version, c.Metadata.AppVersion, err, version)
			}
			objects, err := render(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(made[0]["toolsrv_"+version+"_kubernetes.yaml"]), plain(objects); got != want {
				t.Errorf("the plain manifests are not what the chart renders:\n%s\nwant\n%s", got, want)
			}
			if _, err := decode(objects); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestConfigurations lets the server check the configurations in the chart and in the image of the compose file.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "toolsrv")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/toolsrv")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	image, err := os.ReadFile("../image/toolsrv.toml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Configs struct{ Toolsrv struct{ Content string } }
	}
	text, err := os.ReadFile("../../compose/compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &compose)
	}
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(folder + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The settings that comments suggest.
	with := func(begin, end string) string {
		_, text, found := strings.Cut(string(values), "#   "+begin)
		text, _, ended := strings.Cut(begin+text, end)
		if !found || !ended {
			t.Fatalf("no comment has %s", begin)
		}
		return load(t, folder).Values["config"].(string) + strings.ReplaceAll(strings.ReplaceAll(text, "#   ", ""), "#\n", "\n")
	}
	for name, text := range map[string]string{
		"chart": load(t, folder).Values["config"].(string), "image": string(image), "compose": compose.Configs.Toolsrv.Content, "chart with metrics": with("[metrics]\n", "# Prometheus"), "chart with NATS": with("[state]\n", "# The socket"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text = strings.NewReplacer(`"/tools"`, `"tools"`, `"/run/secrets/toolsrv/tokens"`, `"tokens"`, `"/run/secrets/toolsrv/metrics"`, `"metrics"`, `"/run/secrets/nats/user.creds"`, `"user.creds"`, `"/var/cache/toolsrv/admin.sock"`, `"admin.sock"`).Replace(text)
			err := errors.Join(os.Mkdir(filepath.Join(dir, "tools"), 0o700),
				os.WriteFile(filepath.Join(dir, "tokens"), []byte("secret\n"), 0o600),
				os.WriteFile(filepath.Join(dir, "metrics"), []byte("the-secret-of-prometheus-0123456789\n"), 0o600),
				os.WriteFile(filepath.Join(dir, "user.creds"), nil, 0o600),
				os.WriteFile(filepath.Join(dir, "toolsrv.toml"), []byte(text), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			check := exec.CommandContext(t.Context(), program, "check", "--config", filepath.Join(dir, "toolsrv.toml"))
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestDashboard checks that Grafana's own types take the dashboard, read strictly, and that the chart contains it and the rules unchanged.
func TestDashboard(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(folder + "/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins() // the types of panels and data sources
	//lint:ignore SA1019 the newer form is for Grafana 12 and later only
	var board dashboard.Dashboard
	if err := board.UnmarshalJSONStrict(want); err != nil && err.Error() != "" { // UnmarshalJSONStrict returns an empty list of errors as an error
		t.Error(err)
	}
	if err := board.Validate(); err != nil && err.Error() != "" {
		t.Error(err)
	}
	var plain struct {
		Panels []struct {
			ID    int
			Title string
		}
	}
	if err := yaml.Unmarshal(want, &plain); err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	for _, p := range plain.Panels {
		if p.ID == 0 || taken[p.ID] || p.Title == "" {
			t.Fatalf("a panel has no title, or no id of its own: %+v", p)
		}
		taken[p.ID] = true
	}
	if len(taken) < 40 {
		t.Errorf("there are %d panels", len(taken))
	}
	objects, err := render(load(t, folder), map[string]any{"dashboard": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true}})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decode(objects)
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded["dashboard"].(*corev1.ConfigMap).Data["toolsrv.json"]; strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
		t.Error("the chart's dashboard differs from the file")
	}
	text, err := os.ReadFile(folder + "/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rule := decoded["prometheusrule"].(*prometheusRule)
	if got, want := len(rule.Spec.Groups[0].Rules), strings.Count(string(text), "- alert:"); got != want || got < 10 {
		t.Errorf("the chart has %d alerts, the file %d", got, want)
	}
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, r := range rule.Spec.Groups[0].Rules {
		if !strings.Contains(oneLine(string(text)), oneLine(r.Expr)) || !strings.Contains(string(text), r.Annotations["description"]) {
			t.Errorf("%s is not as in the file: %+v", r.Alert, r)
		}
	}
}
