// The imports of capabilities. Each module of them has a function answer_read of its own.
#include "capability.h"

#include <string.h>

#define IMPORT(module, name) __attribute__((import_module("toolsrv_" module "_v1"), import_name(name)))

IMPORT("http", "send") int http_send(const void *head, int head_size, const void *body, int body_size);
IMPORT("http", "answer_read") void http_read(void *to);
IMPORT("kv", "get") int kv_get(const void *key, int key_size);
IMPORT("kv", "set") int kv_set(const void *key, int key_size, const void *value, int value_size, long long ttl, long long expect);
IMPORT("kv", "delete") int kv_delete(const void *key, int key_size, long long expect);
IMPORT("kv", "list") int kv_list(const void *prefix, int prefix_size, const void *after, int after_size, int limit);
IMPORT("kv", "answer_read") void kv_read(void *to);
IMPORT("secrets", "read") int secrets_get(const void *name, int name_size);
IMPORT("secrets", "answer_read") void secrets_read(void *to);
IMPORT("settings", "read") int settings_get(void);
IMPORT("settings", "answer_read") void settings_read(void *to);
IMPORT("tools", "call") int tools_call(const void *id, int id_size, const void *arguments, int arguments_size);
IMPORT("tools", "answer_read") void tools_read(void *to);

enum { HTTP_SEND, KV_GET, KV_SET, KV_DELETE, KV_LIST, SECRETS_READ, SETTINGS_READ, TOOLS_CALL, FUNCTIONS };

static const struct {
	const char *name;
	void (*read)(void *to);
} functions[FUNCTIONS] = {
	[HTTP_SEND] = {"http.send", http_read},
	[KV_GET] = {"kv.get", kv_read},
	[KV_SET] = {"kv.set", kv_read},
	[KV_DELETE] = {"kv.delete", kv_read},
	[KV_LIST] = {"kv.list", kv_read},
	[SECRETS_READ] = {"secrets.read", secrets_read},
	[SETTINGS_READ] = {"settings.read", settings_read},
	[TOOLS_CALL] = {"tools.call", tools_read},
};

int capability_find(const char *name)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (strcmp(functions[i].name, name) == 0)
			return i;
	return -1;
}

int capability_use(int function, struct span a, struct span b, long long x, long long y)
{
	switch (function) {
	case HTTP_SEND:
		return http_send(a.bytes, a.size, b.bytes, b.size);
	case KV_GET:
		return kv_get(a.bytes, a.size);
	case KV_SET:
		return kv_set(a.bytes, a.size, b.bytes, b.size, x, y);
	case KV_DELETE:
		return kv_delete(a.bytes, a.size, x);
	case KV_LIST:
		return kv_list(a.bytes, a.size, b.bytes, b.size, (int)x);
	case SECRETS_READ:
		return secrets_get(a.bytes, a.size);
	case SETTINGS_READ:
		return settings_get();
	case TOOLS_CALL:
		return tools_call(a.bytes, a.size, b.bytes, b.size);
	}
	__builtin_unreachable();
}

void capability_read(int function, void *to)
{
	functions[function].read(to);
}
