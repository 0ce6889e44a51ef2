// SPDX-License-Identifier: MIT
/*
 * file.c - matrix_file: files of known content, and attributes that Debian has no small tool for.
 *
 *   matrix_file make FILE BYTES SEED [--soft]    random content, which matrix_prop --made SEED
 *                                        knows; with --soft such that it can be compressed
 *   matrix_file made FILE SEED           FILE has still that content (without --soft)
 *   matrix_file check FILE KEPT          FILE has what matrix_prop --keep wrote, a device in front
 *   matrix_file inline FILE              a new FILE of ext4 with inline data keeps what it gets
 *   matrix_file verity FILE              turns fs-verity on, for good
 *   matrix_file encrypt MOUNT DIR        gives the file system a key, and an empty DIR the policy
 *                                        to encrypt with it; if it has it already, the key only
 *
 * Exit status 0, or 1 and a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_random.h"

/* All of a file, of a device the first `front` bytes: its cells use no more. */
static uint8_t *contents(const char *path, size_t front, size_t *n)
{
	int fd = t_open(path, O_RDONLY);
	struct stat st;
	uint8_t *data;
	ssize_t r;

	if (fstat(fd, &st))
		t_die("%s: fstat: %s", path, strerror(errno));
	if (S_ISBLK(st.st_mode))
		st.st_size = front;
	data = malloc(st.st_size + 1);
	for (*n = 0; data && *n < (size_t)st.st_size; *n += r) {
		r = pread(fd, data + *n, st.st_size - *n, *n);
		if (r <= 0)
			t_die("%s: read at %zu: %s", path, *n, r ? strerror(errno) : "short");
	}
	if (!data)
		t_die("out of memory");
	close(fd);
	return data;
}

static void made(const char *path, uint64_t seed)
{
	size_t n;
	uint8_t *data = contents(path, 0, &n), *want = malloc(n + 1);

	if (!want)
		t_die("out of memory");
	t_random_fresh(&seed, want, n);
	if (memcmp(data, want, n))
		t_die("%s: other bytes than it was made with", path);
	free(want);
	free(data);
}

static void make(const char *path, size_t n, uint64_t seed, bool soft)
{
	int fd = t_open(path, O_RDWR | O_CREAT | O_TRUNC);
	uint8_t *data = malloc(n + 1);

	if (!data)
		t_die("out of memory");
	t_random_fresh(&seed, data, n);
	if (soft)
		t_soft(data, n);
	if (pwrite(fd, data, n, 0) != (ssize_t)n || fsync(fd) || close(fd))
		t_die("%s: write: %s", path, strerror(errno));
	free(data);
}

/* Names the first byte that is another, and the last: where is half of the cause. */
static void check(const char *path, const char *kept)
{
	uint8_t *want, *data;
	size_t size, n, i, last;

	want = contents(kept, 0, &size);
	data = contents(path, size, &n);
	if (n != size)
		t_die("%s: %zu bytes, expected %zu", path, n, size);
	if (!memcmp(data, want, n)) {
		free(data);
		free(want);
		return;
	}
	for (i = 0; data[i] == want[i]; i++)
		;
	for (last = n - 1; data[last] == want[last]; last--)
		;
	t_die("%s: byte %zu of %zu is %02x, expected %02x (the last wrong one is %zu: %02x, %02x)", path,
	      i, n, data[i], want[i], last, data[last], want[last]);
}

/*
 * Linux from 6.16 on (large folios of ext4) loses what is written behind a hole of a file that has
 * grown out of its inode and was not written back, when the hole is read: plain buffered I/O.
 */
static void keeps_inline(const char *path)
{
	static uint8_t data[8192], got[65536];
	int fd = t_open(path, O_RDWR | O_CREAT | O_TRUNC);
	const off_t far = 47637;

	memset(data, 'd', sizeof(data));
	if (pwrite(fd, data, 700, 0) != 700 || fsync(fd) ||
	    pwrite(fd, data, sizeof(data), 0) != sizeof(data) ||
	    pwrite(fd, data, sizeof(data), far) != sizeof(data) ||
	    pread(fd, got, sizeof(got), 0) != far + (off_t)sizeof(data))
		t_die("%s: %s", path, strerror(errno));
	close(fd);
	unlink(path);
	if (memcmp(got + far, data, sizeof(data)))
		t_die("%s: this kernel loses data of ext4 files that grow out of their inode", path);
}

static void verity(const char *path)
{
	struct fsverity_enable_arg arg = {
		.version = 1, .hash_algorithm = FS_VERITY_HASH_ALG_SHA256, .block_size = 4096,
	};
	int fd = t_open(path, O_RDONLY);

	if (ioctl(fd, FS_IOC_ENABLE_VERITY, &arg))
		t_die("%s: FS_IOC_ENABLE_VERITY: %s", path, strerror(errno));
	close(fd);
}

static void encrypt(const char *mount, const char *dir)
{
	struct {
		struct fscrypt_add_key_arg arg;
		uint8_t raw[64];
	} key = { .arg = { .key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER, .raw_size = 64 } };
	struct fscrypt_policy_v2 policy = {
		.version = FSCRYPT_POLICY_V2,
		.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS,
		.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS,
		.flags = FSCRYPT_POLICY_FLAGS_PAD_32,
	};
	int fd = t_open(mount, O_RDONLY);
	size_t i;

	for (i = 0; i < sizeof(key.raw); i++)
		key.raw[i] = i * 7 + 1;
	if (ioctl(fd, FS_IOC_ADD_ENCRYPTION_KEY, &key))
		t_die("%s: FS_IOC_ADD_ENCRYPTION_KEY: %s", mount, strerror(errno));
	close(fd);
	memcpy(policy.master_key_identifier, key.arg.key_spec.u.identifier,
	       FSCRYPT_KEY_IDENTIFIER_SIZE);
	fd = t_open(dir, O_RDONLY);
	if (ioctl(fd, FS_IOC_SET_ENCRYPTION_POLICY, &policy))
		t_die("%s: FS_IOC_SET_ENCRYPTION_POLICY: %s", dir, strerror(errno));
	close(fd);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "make") && (argc == 5 || (argc == 6 && !strcmp(argv[5], "--soft"))))
		make(argv[2], t_size(argv[3]), strtoull(argv[4], NULL, 0), argc == 6);
	else if (!strcmp(what, "made") && argc == 4)
		made(argv[2], strtoull(argv[3], NULL, 0));
	else if (!strcmp(what, "check") && argc == 4)
		check(argv[2], argv[3]);
	else if (!strcmp(what, "inline") && argc == 3)
		keeps_inline(argv[2]);
	else if (!strcmp(what, "verity") && argc == 3)
		verity(argv[2]);
	else if (!strcmp(what, "encrypt") && argc == 4)
		encrypt(argv[2], argv[3]);
	else
		t_die("make FILE BYTES SEED [--soft] | made FILE SEED | check FILE KEPT |\n"
		      "inline FILE | verity FILE | encrypt MOUNT DIR");
	return 0;
}
