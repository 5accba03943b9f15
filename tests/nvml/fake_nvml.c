/* A stand-in for libnvidia-ml.so.1 whose answers a test writes into a small file.
 *
 * The file named by FAKE_NVML is read anew at every call, so a test can change the device under a
 * running reader. One line an answer, `key = value`:
 *
 *     init = !18                     the call fails with NVML code 18
 *     driver = 580.126.09
 *     count = 1
 *     0.name = NVIDIA GB10           answers of device 0
 *     0.memory = 34190917632 1048576 total and used bytes
 *     0.memory_v2 = !13              only the second version of the call; without it, 0.memory
 *     0.compute = 4243:1024 77:na    pid and bytes; na is NVML_VALUE_NOT_AVAILABLE
 *     0.slowdown = 500000000 na      SW and HW thermal slowdown counters; na is not supported
 *     0.utilisation = hang           does not return for ten minutes, or until the line changes
 *     0.utilisation = crash          ends the process by SIGSEGV
 *     0.lost_after = 40              from the 41st call on, each call fails with GPU_IS_LOST
 *
 * A key that is not there answers NOT_SUPPORTED. Every key asked for is appended to FAKE_NVML_LOG.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef void *device_t;

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };
enum { VALUE_LENGTH = 512, HANG_S = 600, POLL_US = 10000 };
enum { SW_THERMAL_SLOWDOWN = 269, HW_THERMAL_SLOWDOWN = 270, TYPE_U64 = 3 };

/* The answers */

static int look_up(const char *key, char *value) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[VALUE_LENGTH + 64];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *equals = strstr(line, " = ");
        if (!equals) continue;
        *equals = 0;
        found = !strcmp(line, key);
        if (found) snprintf(value, VALUE_LENGTH, "%.*s", (int)strcspn(equals + 3, "\n"), equals + 3);
    }
    if (file) fclose(file);
    return found;
}

static void note(const char *key) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", key);
    fclose(file);
}

static int answer(const char *key, char *value) {
    note(key);
    for (long waited = 0; look_up(key, value); waited += POLL_US) {
        if (!strcmp(value, "crash")) raise(SIGSEGV);
        if (strcmp(value, "hang")) return value[0] == '!' ? atoi(value + 1) : OK;
        if (waited >= HANG_S * 1000000L) break;
        usleep(POLL_US);
    }
    return NOT_SUPPORTED;
}

static int has(device_t device, const char *name) {
    char key[64], value[VALUE_LENGTH];
    snprintf(key, sizeof key, "%ld.%s", (long)device - 1, name);
    return look_up(key, value);
}

static int of(device_t device, const char *name, char *value) {
    static long calls;
    char key[64];
    snprintf(key, sizeof key, "%ld.lost_after", (long)device - 1);
    if (look_up(key, value) && calls++ >= atol(value)) return GPU_IS_LOST;
    snprintf(key, sizeof key, "%ld.%s", (long)device - 1, name);
    return answer(key, value);
}

static int text(int code, const char *value, char *out, u32 length) {
    if (code == OK) snprintf(out, length, "%s", value);
    return code;
}

static int number(device_t device, const char *name, u32 *out) {
    char value[VALUE_LENGTH];
    int code = of(device, name, value);
    if (code == OK) *out = (u32)strtoul(value, NULL, 10);
    return code;
}

/* The library */

int nvmlInitWithFlags(u32 flags) {
    char value[VALUE_LENGTH];
    int code = answer("init", value);
    (void)flags;
    return code == NOT_SUPPORTED ? OK : code;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == OK ? "Success" : "Error of the fake"; }

int nvmlSystemGetDriverVersion(char *out, u32 length) {
    char value[VALUE_LENGTH];
    int code = answer("driver", value);
    return text(code, value, out, length);
}

int nvmlDeviceGetCount_v2(u32 *out) {
    char value[VALUE_LENGTH];
    int code = answer("count", value);
    if (code == OK) *out = (u32)strtoul(value, NULL, 10);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, device_t *out) {
    char value[VALUE_LENGTH], key[64];
    snprintf(key, sizeof key, "%u.handle", index);
    *out = (device_t)((long)index + 1);
    int code = answer(key, value);
    return code == NOT_SUPPORTED ? OK : code;
}

/* A device */

int nvmlDeviceGetName(device_t device, char *out, u32 length) {
    char value[VALUE_LENGTH];
    int code = of(device, "name", value);
    return text(code, value, out, length);
}

int nvmlDeviceGetUUID(device_t device, char *out, u32 length) {
    char value[VALUE_LENGTH];
    int code = of(device, "uuid", value);
    return text(code, value, out, length);
}

struct utilisation { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(device_t device, struct utilisation *out) {
    out->memory = 0;
    return number(device, "utilisation", &out->gpu);
}

int nvmlDeviceGetPowerUsage(device_t device, u32 *out) { return number(device, "power", out); }
int nvmlDeviceGetPowerManagementLimit(device_t device, u32 *out) {
    return number(device, "power_limit", out);
}
int nvmlDeviceGetEnforcedPowerLimit(device_t device, u32 *out) {
    return number(device, "enforced_power_limit", out);
}

int nvmlDeviceGetClockInfo(device_t device, int type, u32 *out) {
    return number(device, type == 1 ? "sm_clock" : "other_clock", out);
}

struct temperature { u32 version, sensor; int celsius; };
int nvmlDeviceGetTemperatureV(device_t device, struct temperature *out) {
    return number(device, "temperature_v", (u32 *)&out->celsius);
}
int nvmlDeviceGetTemperature(device_t device, int sensor, u32 *out) {
    (void)sensor;
    return number(device, "temperature", out);
}

struct margin { u32 version; int celsius; };
int nvmlDeviceGetMarginTemperature(device_t device, struct margin *out) {
    char value[VALUE_LENGTH];
    int code = of(device, "margin", value);
    if (code == OK) out->celsius = atoi(value);
    return code;
}

int nvmlDeviceGetCurrentClocksEventReasons(device_t device, u64 *out) {
    char value[VALUE_LENGTH];
    int code = of(device, "reasons", value);
    if (code == OK) *out = strtoull(value, NULL, 0);
    return code;
}

struct memory { u64 total, free, used; };
static int memory(device_t device, const char *name, struct memory *out) {
    char value[VALUE_LENGTH];
    int code = of(device, name, value);
    if (code == OK && sscanf(value, "%llu %llu", &out->total, &out->used) == 2)
        out->free = out->total - out->used;
    return code;
}
int nvmlDeviceGetMemoryInfo(device_t device, struct memory *out) {
    return memory(device, "memory", out);
}

struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory_v2 *out) {
    struct memory plain = {0, 0, 0};
    int code = memory(device, has(device, "memory_v2") ? "memory_v2" : "memory", &plain);
    out->total = plain.total, out->used = plain.used, out->free = plain.free;
    return code;
}

struct field { u32 id, scope; long long at, latency_us; int type, code; u64 value; };
int nvmlDeviceGetFieldValues(device_t device, int count, struct field *out) {
    char value[VALUE_LENGTH], sw[64] = "na", hw[64] = "na";
    int code = of(device, "slowdown", value);
    if (code != OK) return code;
    sscanf(value, "%63s %63s", sw, hw);
    for (int i = 0; i < count; i++) {
        const char *counter = out[i].id == SW_THERMAL_SLOWDOWN ? sw
                            : out[i].id == HW_THERMAL_SLOWDOWN ? hw : "na";
        out[i].type = TYPE_U64;
        out[i].code = strcmp(counter, "na") ? OK : NOT_SUPPORTED;
        out[i].value = out[i].code == OK ? strtoull(counter, NULL, 10) : (u64)rand();
    }
    return OK;
}

int nvmlDeviceGetPcieThroughput(device_t device, int counter, u32 *out) {
    (void)counter;
    return number(device, "pcie_throughput", out);
}

/* Processes; asked twice, the first time with no room, only to learn how many there are */

struct process { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
static int processes(device_t device, const char *name, u32 *count, struct process *out) {
    char value[VALUE_LENGTH], *next;
    u32 found = 0, room = *count;
    int code = of(device, name, value);
    if (code != OK) return code;
    for (char *word = strtok_r(value, " ", &next); word; word = strtok_r(NULL, " ", &next), found++) {
        char *size = strchr(word, ':');
        if (!size) return INVALID_ARGUMENT;
        if (!out || found >= room) continue;
        u64 used = strcmp(size + 1, "na") ? strtoull(size + 1, NULL, 10) : ~0ULL;
        out[found] = (struct process){(u32)strtoul(word, NULL, 10), used, ~0U, ~0U};
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, u32 *count, struct process *out) {
    return processes(device, "compute", count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t device, u32 *count, struct process *out) {
    return processes(device, "graphics", count, out);
}
