#!/bin/sh
# Edits the interpreter's sources in the folder $1 where they are not as an engine needs them. An edit whose place is gone is an error.
set -eu

# replace FILE LINE OLD NEW replaces the text OLD by NEW, which stands alone on the line that follows one that reads LINE.
replace() {
	awk -v line="$2" -v old="$3" -v new="$4" '
		before == line && index($0, old) { at = index($0, old); $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); done++ }
		{ print; before = $0 }
		END { exit done != 1 }' "$1" >"$1.tmp" || { echo "$1: \"$3\" is not there once, behind \"$2\"" >&2; exit 1; }
	mv "$1.tmp" "$1"
}

cd "$1"
# The stack check is left out for WASI, where a stack of unknown size is the usual case. Ours is known.
replace quickjs.c '    rt->stack_size = JS_DEFAULT_STACK_SIZE;' '#ifdef __wasi__' '#if 0'
replace quickjs.c '{' '#if defined(__wasi__)' '#if 0'
# The seed of hash tables is the same each time, so that the snapshots of two scripts have more in common. Math.random does not use it.
replace quickjs.c '    // TODO(bnoordhuis) use getrandom() etc.' 'js__gettimeofday_us()' '0x9e3779b97f4a7c15'
# These call themselves with little on the stack in memory, by which the interpreter measures how deep it is, and much on the host's,
# which ends a call without a word to the script. They get more of the first, so that both run out together.
room() {
	replace quickjs.c "$1" '{' "{ char room[$2]; __asm__ volatile (\"\" : : \"r\"(room));"
}
room 'static JSValue json_parse_value(JSParseState *s, JSONParseRecord *pr)' 160
room '                          JSValueConst indent)' 160
room 'static __exception int js_parse_unary(JSParseState *s, int parse_flags)' 320

# Where a loop goes back, the frame remembers the place, so that who ends an endless loop can say which one it is.
awk '/^        CASE\(OP_goto\):$/ { loops = 1 } /^        CASE\(OP_catch\):$/ { loops = 0 }
	loops && sub(/js_poll_interrupts\(ctx\)/, "(sf->cur_pc = pc + 1, js_poll_interrupts(ctx))") { done++ }
	{ print }
	END { exit done != 7 }' quickjs.c >quickjs.c.tmp || { echo "quickjs.c: loops go back in other places" >&2; exit 1; }
mv quickjs.c.tmp quickjs.c
cat >>quickjs.c <<'END'

// JS_FrameAt says in which file, line and column frame number n is, from the innermost one out; it reports false where there are no more.
// The file is empty for a frame of no script. Nothing is allocated, so this works in the midst of whatever the interpreter was doing.
bool JS_FrameAt(JSContext *ctx, int n, char *file, size_t size, int *line, int *column)
{
    JSStackFrame *sf = ctx->rt->current_stack_frame;
    while (sf != NULL && n-- > 0)
        sf = sf->prev_frame;
    if (sf == NULL)
        return false;
    *file = 0;
    if (JS_VALUE_GET_TAG(sf->cur_func) != JS_TAG_OBJECT)
        return true;
    JSObject *p = JS_VALUE_GET_OBJ(sf->cur_func);
    if (!js_class_has_bytecode(p->class_id))
        return true;
    JSFunctionBytecode *b = p->u.func.function_bytecode;
    if (b->filename == JS_ATOM_NULL || sf->cur_pc == NULL)
        return true;
    *line = find_line_num(ctx, b, sf->cur_pc - b->byte_code_buf - 1, column);
    const char *name = JS_AtomGetStrRT(ctx->rt, file, size, b->filename);
    if (name != file)
        snprintf(file, size, "%s", name);
    return true;
}
END
