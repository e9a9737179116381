import { ConfigurationError } from '../core/errors'
import { type CounterStore, storedKey } from './rate-limit'

/** The methods that we use of an `ioredis` client, cluster or not. */
export interface IoredisClient {
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
  readonly evalsha: unknown
}

/** The methods that we use of a client, pool or cluster of `redis` (node-redis 4 and later). */
export interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  readonly evalSha: unknown
}

export interface RedisCountersOptions {
  /** The prefix of every key. Default `doorward:`. */
  prefix?: string
}

/**
 * Stores counters in Redis, through your client of `ioredis` or `redis`. The client keeps its own configuration. Your app connects the
 * client, listens to its `error` events and closes it.
 *
 * Each method is one script, so each method is atomic. The windows use Redis's clock, and keys expire by themselves. A method rejects with
 * the client's error.
 *
 * @throws ConfigurationError for a value that is not a client of `ioredis` or `redis`
 */
export function redisCounters(client: IoredisClient | NodeRedisClient, { prefix = 'doorward:' }: RedisCountersOptions = {}): CounterStore {
  if (typeof prefix !== 'string') throw new ConfigurationError('redisCounters: prefix must be a string.')
  const run = runnerOf(client)
  const stored = (key: string) => prefix + storedKey(key)

  return {
    async increment(key, windowSeconds) {
      const [count, millisecondsLeft] = await run(countUp, stored(key), String(Math.ceil(windowSeconds * 1000)))
      return { count: Number(count), resetSeconds: Math.max(1, Math.ceil(Number(millisecondsLeft) / 1000)) }
    },
    async decrement(key) {
      await run(countDown, stored(key))
    },
    async reset(key) {
      await run(remove, stored(key))
    },
  }
}

// A key without an expiry (-1) came from another program, or lost its expiry. The script sets an expiry, so that nobody is locked out
// forever.
const countUp = `
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return { count, left }`

const countDown = `
if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then redis.call('DECR', KEYS[1]) end
return {}`

const remove = `
redis.call('DEL', KEYS[1])
return {}`

type Runner = (script: string, key: string, ...rest: string[]) => Promise<readonly unknown[]>

/**
 * Returns the function that runs a script with EVAL. EVAL sends a few hundred bytes more than EVALSHA, but still works after Redis lost its
 * scripts.
 */
function runnerOf(client: IoredisClient | NodeRedisClient): Runner {
  const isObject = typeof client === 'object' && client !== null && typeof client.eval === 'function'
  if (isObject && 'evalSha' in client)
    return async (script, key, ...rest) => list(await client.eval(script, { keys: [key], arguments: rest }))
  if (isObject && 'evalsha' in client) return async (script, key, ...rest) => list(await client.eval(script, 1, key, ...rest))
  throw new ConfigurationError("redisCounters() needs a client of 'ioredis' or of 'redis'.")
}

function list(answer: unknown): readonly unknown[] {
  return Array.isArray(answer) ? answer : []
}
