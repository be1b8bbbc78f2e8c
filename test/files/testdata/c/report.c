// A plain WASI program for the tests, which looks at the files that it was granted.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char content[1 << 20];

// take reads a file, and returns how many bytes it has, or less than 0.
static long take(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return -errno;
    size_t n = fread(content, 1, sizeof content - 1, f);
    content[n] = 0;
    fclose(f);
    return (long)n;
}

static void print_text(const char *name, const char *text) {
    printf("\"%s\":\"", name);
    for (; *text; text++) *text == '\n' ? printf("\\n") : putchar(*text);
    printf("\",");
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int list(const char *path, char *names[], int most) {
    DIR *d = opendir(path);
    int n = 0;
    if (!d) return -errno;
    for (struct dirent *e; n < most && (e = readdir(d));) names[n++] = strdup(e->d_name);
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, compare);
    return n;
}

static void print_list(const char *name, const char *path) {
    char *names[100];
    int n = list(path, names, 100);
    printf("\"%s\":[", name);
    for (int i = 0; i < n; i++) printf("%s\"%s\"", i ? "," : "", names[i]);
    printf("],");
}

static int number(int result) { return result < 0 ? errno : 0; }

int main(void) {
    char *names[1000], middle[6] = "";
    struct stat info = {0};
    printf("{\"errno\":%d,", take("/geo/cities.csv") < 0 ? errno : 0);
    print_text("read", content);
    take("geo/maps/world.json");
    print_text("relative", content);
    take("/geo/current/world.json");
    print_text("linked", content);
    long sum = 0, n = take("/geo/large");
    for (long i = 0; i < n; i++) sum += (unsigned char)content[i];
    print_list("root", "/");
    print_list("list", "/geo");
    stat("/geo/cities.csv", &info);
    int fd = open("/geo/cities.csv", O_RDONLY);
    lseek(fd, 6, SEEK_SET);
    read(fd, middle, 5);
    close(fd);
    print_text("middle", middle);
    printf("\"many\":%d,\"sum\":%ld,\"size\":%lld,\"none\":%ld,\"out\":%ld,\"passwd\":%ld,\"fifo\":%ld,", list("/geo/many", names, 1000), sum,
           (long long)info.st_size, -take("/geo/none"), -take("/geo/out"), -take("/etc/passwd"), -take("/geo/fifo"));
    printf("\"write\":%d,\"create\":%d,\"mkdir\":%d,\"remove\":%d}", number(open("/geo/cities.csv", O_WRONLY)),
           number(open("/geo/new", O_WRONLY | O_CREAT, 0600)), number(mkdir("/geo/new", 0700)), number(unlink("/geo/cities.csv")));
    return 0;
}
