import { availableParallelism } from 'node:os'
import argon2 from 'argon2'
import { ConfigurationError, ServiceUnavailableError } from '../errors'
import { argon2Bounds, readArgon2Parameters } from './argon2-parameters'
import { createBoundedQueue } from './bounded-queue'
import type { PasswordHasher } from './password-hasher'

export interface Argon2idOptions {
  /** KiB; 19456 (OWASP Password Storage Cheat Sheet). */
  memoryCost?: number
  /** Passes; 2. */
  timeCost?: number
  /** Lanes; 1. */
  parallelism?: number
  /** Hashes at once; as many as there are cores, at most 4. */
  concurrency?: number
  /** Waiting hashes; 64. */
  queue?: number
}

/**
 * argon2id with a random salt of 16 bytes, in the PHC format. Both `hash` and `verify` throw ServiceUnavailableError
 * when the queue is full or argon2 gets no memory: busy is not the same as a wrong password.
 *
 * @throws ConfigurationError for an unknown option, one out of range, or a cost below OWASP's weakest recommendation.
 */
export function argon2idHasher(options: Argon2idOptions = {}): PasswordHasher {
  const { memoryCost, timeCost, parallelism, concurrency, queue } = resolveOptions(options)
  const run = createBoundedQueue({ concurrency, queue })
  return {
    hash: (password) => run(() => orBusy(argon2.hash(password, { type: argon2.argon2id, memoryCost, timeCost, parallelism }))),

    async verify(hash, password) {
      if (typeof password !== 'string' || readArgon2Parameters(hash) === null) return false
      return run(() => orBusy(argon2.verify(hash, password)))
    },

    needsRehash(hash) {
      const stored = readArgon2Parameters(hash)
      if (stored?.variant !== 'argon2id' || stored.version !== 0x13) return true
      return stored.memoryCost < memoryCost || stored.timeCost < timeCost || stored.saltBytes < 16 || stored.hashBytes < 32
    },
  }
}

/** What argon2 can still fail at after the checks above is its own memory. */
async function orBusy<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new ServiceUnavailableError({ cause, details: { retry_after_seconds: 1 } })
  }
}

/** OWASP's weakest equivalent is m=7168, t=5; less memory times passes than that is refused. */
const leastWork = 7_168 * 5

const ranges: Readonly<Record<keyof Argon2idOptions, { fallback: () => number; least: number; most: number }>> = {
  memoryCost: { fallback: () => 19_456, least: 7_168, most: argon2Bounds.memoryCost },
  timeCost: { fallback: () => 2, least: 1, most: argon2Bounds.timeCost },
  parallelism: { fallback: () => 1, least: 1, most: argon2Bounds.parallelism },
  concurrency: { fallback: () => Math.min(4, availableParallelism()), least: 1, most: 64 },
  queue: { fallback: () => 64, least: 0, most: 10_000 },
}

function resolveOptions(options: Argon2idOptions): Required<Argon2idOptions> {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(ranges, name))
  if (unknown !== undefined) throw new ConfigurationError(`argon2idHasher has no option ${JSON.stringify(unknown.slice(0, 64))}.`)
  const resolved = {
    memoryCost: inRange('memoryCost', options),
    timeCost: inRange('timeCost', options),
    parallelism: inRange('parallelism', options),
    concurrency: inRange('concurrency', options),
    queue: inRange('queue', options),
  }
  if (resolved.memoryCost * resolved.timeCost < leastWork) {
    throw new ConfigurationError('argon2idHasher: memoryCost and timeCost are too low together; 19456 and 2 are the defaults.')
  }
  return resolved
}

function inRange(name: keyof Argon2idOptions, options: Argon2idOptions): number {
  const { fallback, least, most } = ranges[name]
  const value = options[name] ?? fallback()
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new ConfigurationError(`argon2idHasher: ${name} must be a whole number from ${least} to ${most}.`)
}
