/* SPDX-License-Identifier: MIT */
/*
 * mapping.pml - the life of one mapping, for spin: the states of nvidia-fs.h, who holds what,
 * and everybody who may come at the same time. tests/unit/t_model.sh runs it.
 *
 * Checked: nothing touches the mapping after it is freed; no reference, pin or fence page is
 * given back twice or kept; no DMA after the GPU memory is gone; a sleeper is always woken;
 * every path ends, and then all is given back.
 *
 * A section below nvfs_mapping.lock is one LOCKED step. Everything between may be interleaved.
 * A condition that is read without the lock is a step of its own. Loops that poll are guards.
 * Assumed of the GPU driver (spec: what it promises): a callback runs once a pin, below its
 * lock; put_pages takes that lock, and does nothing to a pin that a callback has ended;
 * dma_map takes it, and knows a table that is gone; dma_unmap does not take it.
 *
 * What the C code does to `state`, for t_model.sh to compare:
 *   C: nvfs_mmap FREE
 *   C: nvfs_map INIT
 *   C: nvfs_map READY
 *   C: nvfs_map FREE
 *   C: nvfs_mapping_revoke REVOKED
 *   C: nvfs_mapping_close CLOSED
 */

mtype = { FREE, INIT, READY, REVOKED, CLOSED };

mtype state = FREE;	/* from mmap on: CHANGE(-, FREE, mmap) */
bool lock;
byte ref = 1;		/* that of the VMA */
byte users;
bool hashed = true, vma = true, freed, queued;
bool gone, callback_done, table, persistent, mapped, fence;
bool async;		/* the fence page is a request's */
bool busy;		/* all carrier blocks, as if there was one */
bool waits[2], granted[2], woken[2];	/* for blocks: synchronous, asynchronous */
byte threads;		/* of the process, that are inside a call */
bool idle[3];		/* woken from nvfs_mapping.idle: callback, who unpins, UNMAP */

bool rm;		/* the GPU driver's lock */
bool mm;		/* mmap_lock */
bool live;		/* the driver has our pin */
bool no_dma;		/* the pin is over: the memory belongs to somebody else */

#define LOCKED(body) atomic { !lock -> assert(!freed); body }
#define TAKE(l) atomic { !l -> l = true }
#define GIVE(l) l = false
#define CHANGE(from, to, who) state == from -> state = to

inline wake_idle() { idle[0] = true; idle[1] = true; idle[2] = true }

/* Now, or when the process has no thread left; decided before, so that nobody counts on it. */
inline sometime()
{
	if
	:: skip
	:: true -> threads == 0
	fi
}

/* wait_event() on nvfs_mapping.idle */
inline wait_idle(i, cond)
{
	do
	:: idle[i] = false;
	   assert(!freed);
	   if
	   :: cond -> break
	   :: else -> idle[i]
	   fi
	od
}

/* nvfs_mapping_get() and _put() */
inline get(ok)
{
	atomic {
		ok = hashed && ref > 0;
		if
		:: ok -> ref++
		:: else
		fi
	}
}

inline put()
{
	atomic {
		assert(!freed && ref > 0);
		ref--;
		if
		:: ref == 0 -> assert(!queued); queued = true
		:: else
		fi
	}
}

/* nvfs_mapping_enter() and _leave() */
inline enter(ok)
{
	LOCKED(
		ok = (state == READY);
		if
		:: ok -> users++
		:: else
		fi
	)
}

inline leave()
{
	LOCKED(
		assert(users > 0);
		users--;
		if
		:: users == 0 -> wake_idle()
		:: else
		fi
	)
}

/* -- gpu.c -- */

inline hold(ok)
{
	LOCKED(
		ok = !gone;
		if
		:: ok -> users++
		:: else
		fi
	)
}

inline put_pages()
{
	TAKE(rm);
	if
	:: live -> live = false; no_dma = true
	:: else
	fi;
	GIVE(rm)
}

/* nvfs_gpu_revoked(), then put_pages or not */
inline unpin(ok)
{
	LOCKED(ok = gone);
	if
	:: ok ->
		wait_idle(1, callback_done);
		LOCKED(skip)
	:: else -> put_pages()
	fi
}

/* nvfs_mapping_unmap() */
inline unmap_all(ok)
{
	hold(ok);		/* nvfs_gpu_unmap_peer() */
	if
	:: ok -> assert(!table || !no_dma); leave()	/* dma_unmap: the table is there */
	:: else
	fi;
	if
	:: table -> unpin(ok); table = false
	:: else
	fi;
	fence = false
}

/* nvfs_blocks_wake_all() */
inline wake_blocks()
{
	LOCKED(woken[0] = true; woken[1] = true)
}

/* The GPU memory is freed at any time, or its process ends: the driver's own context. */
proctype Free()
{
	bool revoke;

	sometime();
	TAKE(rm);
	revoke = live && !persistent;
	if
	:: revoke ->
		live = false;
		/* nvfs_gpu_free_callback() */
		LOCKED(
			gone = true;
			if
			:: CHANGE(INIT, REVOKED, GPU)
			:: CHANGE(READY, REVOKED, GPU)
			:: else -> assert(state == CLOSED)
			fi
		);
		wake_blocks();
		wait_idle(0, users == 0);
		assert(fence);
		TAKE(lock);
		callback_done = true;
		assert(!freed);
		wake_idle();
		GIVE(lock);
		no_dma = true
	:: else
	fi;
	GIVE(rm)
}

/* -- mapping.c -- */

proctype Map()
{
	bool ok, bad;

	get(ok);
	if
	:: !ok -> goto out
	:: else
	fi;
	LOCKED(
		if
		:: CHANGE(FREE, INIT, MAP)
		:: else -> ok = false
		fi
	);
	if
	:: !ok -> goto drop
	:: else
	fi;
	if
	:: fence = true
	:: bad = true		/* no fence page, or no carriers: nothing is pinned */
	fi;
	if
	:: !bad ->
		/* nvfs_gpu_pin() */
		atomic { gone = false; callback_done = false };
		TAKE(rm);
		if
		:: live = true; no_dma = false; persistent = false
		:: live = true; no_dma = false; persistent = true
		:: bad = true
		fi;
		GIVE(rm);
		if
		:: bad
		:: !bad -> table = true
		:: !bad -> bad = true; unpin(ok)	/* a table that we do not understand */
		fi
	:: else
	fi;
	if
	:: !bad ->
		/* nvfs_peers_map() */
		TAKE(rm);
		ok = live;
		GIVE(rm);
		if
		:: ok ->
			hold(ok);
			if
			:: ok -> assert(!no_dma); leave()
			:: else
			fi
		:: else
		fi;
		if
		:: skip
		:: bad = true	/* no memory for it, or gone */
		fi
	:: else
	fi;
	LOCKED(
		if
		:: bad
		:: !bad && state == REVOKED -> bad = true
		:: !bad && state != REVOKED ->
			if
			:: CHANGE(INIT, READY, MAP)
			:: else -> assert(state == CLOSED)
			fi
		fi
	);
	if
	:: bad ->
		unmap_all(ok);
		LOCKED(
			if
			:: CHANGE(INIT, FREE, MAP)
			:: CHANGE(REVOKED, FREE, MAP)
			:: else -> assert(state == CLOSED)
			fi
		)
	:: else -> mapped = true
	fi;
drop:
	put();
out:
	threads--
}

/* By one more thread at any time, or when the process ends and has no thread any more. */
proctype Munmap()
{
	sometime();
	TAKE(mm);
	if
	:: vma ->
		vma = false;
		/* nvfs_mapping_close() */
		LOCKED(
			if
			:: CHANGE(FREE, CLOSED, munmap)
			:: CHANGE(INIT, CLOSED, munmap)
			:: CHANGE(READY, CLOSED, munmap)
			:: CHANGE(REVOKED, CLOSED, munmap)
			fi
		);
		hashed = false;
		wake_blocks();
		put()
	:: else
	fi;
	GIVE(mm)
}

proctype Unmap()
{
	bool ok, killed;

	get(ok);
	if
	:: !ok -> goto out
	:: else
	fi;
	TAKE(mm);
	ok = vma;
	if
	:: ok ->
		/* nvfs_mapping_close() */
		LOCKED(
			if
			:: CHANGE(FREE, CLOSED, UNMAP)
			:: CHANGE(READY, CLOSED, UNMAP)
			:: CHANGE(REVOKED, CLOSED, UNMAP)
			:: state == INIT -> ok = false	/* -EBUSY */
			fi
		);
		if
		:: ok ->
			vma = false;
			hashed = false;
			wake_blocks();
			put()
		:: else
		fi
	:: else
	fi;
	GIVE(mm);
	if
	:: ok ->
		if
		:: wait_idle(2, users == 0)
		:: killed = true
		fi;
		if
		:: !killed -> ref == 1		/* schedule_timeout() until it is so */
		:: else
		fi;
		put();
		if
		:: !killed -> freed		/* flush_workqueue() */
		:: else
		fi
	:: else -> put()
	fi;
out:
	threads--
}

proctype Teardown()
{
	bool ok;

	queued;
	if
	:: mapped -> unmap_all(ok)
	:: else -> assert(!table && !fence && !live)
	fi;
	assert(!freed && ref == 0 && users == 0 && !async);
	freed = true
}

/* -- carrier.c, io.c, async.c -- */

/* nvfs_blocks_serve(), below the lock */
inline serve()
{
	if
	:: !busy && waits[0] -> waits[0] = false; granted[0] = true; busy = true; woken[0] = true
	:: !busy && waits[1] -> waits[1] = false; granted[1] = true; busy = true; woken[1] = true
	:: else
	fi
}

/* One window: nvfs_blocks_take(), the drive, nvfs_blocks_give(). Entered before. */
inline window(i, ok)
{
	LOCKED(
		ok = !busy && !waits[0] && !waits[1];
		granted[i] = ok;
		if
		:: ok -> busy = true
		:: else -> waits[i] = true
		fi
	);
	do
	:: ok -> break
	:: else ->
		/* set_current_state() and what follows it, below the lock */
		LOCKED(
			woken[i] = false;
			if
			:: granted[i] -> ok = true
			:: !granted[i] && state != READY -> waits[i] = false; serve(); break
			:: !granted[i] && state == READY
			:: !granted[i] && state == READY -> waits[i] = false; serve(); break	/* killed */
			fi
		);
		if
		:: ok -> break
		:: else -> woken[i]	/* schedule() */
		fi
	od;
	if
	:: ok ->
		assert(!no_dma && !freed);	/* the drive writes */
		assert(!no_dma && !freed);
		LOCKED(
			assert(busy);
			busy = false;
			serve()
		)
	:: else
	fi
}

proctype Sync()
{
	bool ok;

	get(ok);
	if
	:: !ok -> goto out
	:: else
	fi;
	enter(ok);
	if
	:: ok -> window(0, ok); leave()
	:: else
	fi;
	put();
out:
	threads--
}

/* The ioctl, then whoever the file system calls back, then a work item. */
proctype Async()
{
	bool ok, more = true;

	get(ok);
	if
	:: !ok -> goto out
	:: else
	fi;
	LOCKED(
		ok = (state == READY);
		if
		:: ok -> assert(!async); async = true
		:: else
		fi
	);
	if
	:: !ok -> goto drop
	:: else
	fi;
	do
	:: enter(ok);
	   if
	   :: ok -> window(1, ok); leave()
	   :: else
	   fi;
	   if
	   :: ok && more -> more = false	/* GOING ON: one window more */
	   :: break
	   fi
	od;
	LOCKED(
		assert(fence);			/* the result */
		async = false
	);
drop:
	put();
out:
	threads--
}

/* Who is there besides one munmap: all at once is too much for one search. */
init {
	atomic {
		run Teardown();
		run Munmap();
		run Map();
		if
		:: threads = 2; run Map(); run Free()
		:: threads = 3; run Map(); run Unmap()
		:: threads = 3; run Sync(); run Async(); run Free()
		:: threads = 3; run Unmap(); run Async(); run Free()
		fi
	};
	_nr_pr == 1;
	assert(freed && ref == 0 && users == 0 && !live && !fence && !table && !async && !busy);
	assert(!rm && !mm && !lock)
}
