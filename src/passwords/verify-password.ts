import { ServiceUnavailableError } from '../errors'
import { describeError, type Logger } from '../logger'
import type { PasswordHasher } from './password-hasher'
import { isUnusablePassword } from './unusable-password'

export interface Verification {
  matches: boolean
  /** The hash is verified and weaker than what is made now: hash the password again and store that. */
  needsRehash: boolean
}

interface Verifier {
  hasher: PasswordHasher
  dummyHash: () => Promise<string>
  logger: Logger
}

/**
 * Whether the password is the hash's. `hash` null: nobody has this address. Then, and where the stored hash is an unusable
 * password or cannot be read, a dummy hash of current parameters is verified instead, so that time does not tell.
 *
 * @throws ServiceUnavailableError when the queue is full, and nothing else: a hasher that throws is a failed login, logged
 */
export async function verifyPassword(ctx: Verifier, hash: string | null, password: string): Promise<Verification> {
  const failed = { matches: false, needsRehash: false }
  try {
    const stored = readable(ctx, hash)
    if (stored === null) {
      await ctx.hasher.verify(await ctx.dummyHash(), password)
      return failed
    }
    const matches: unknown = await orDummy(ctx, password, () => ctx.hasher.verify(stored, password))
    return matches === true ? { matches, needsRehash: ctx.hasher.needsRehash(stored) } : failed // a host's hasher may answer anything
  } catch (error) {
    if (error instanceof ServiceUnavailableError) throw error
    ctx.logger.error({ error: describeError(error) }, 'doorward: the password hasher failed; the login counts as failed')
    return failed
  }
}

/** A hasher that chokes on a hash does so at once: the time is spent before anybody hears of it. */
async function orDummy<T>(ctx: Verifier, password: string, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify()
  } catch (error) {
    if (!(error instanceof ServiceUnavailableError)) await ctx.hasher.verify(await ctx.dummyHash(), password)
    throw error
  }
}

/** The hash, if the hasher can do something with it. */
function readable({ hasher, logger }: Verifier, hash: unknown): string | null {
  if (hash === null || isUnusablePassword(hash)) return null
  const reason = typeof hash === 'string' ? (hasher.unreadable?.(hash) ?? null) : 'unknown_format' // a row may hold anything
  if (typeof hash === 'string' && reason === null) return hash
  if (reason === 'bcrypt_not_installed') warnOfBcrypt(logger)
  else logger.error({ reason }, 'doorward: a stored password hash cannot be read; its owner has to reset the password')
  return null
}

const warned = new WeakSet<Logger>()

/** Once for each router: in an imported table every login would say it. */
function warnOfBcrypt(logger: Logger): void {
  if (warned.has(logger)) return
  warned.add(logger)
  logger.warn({}, 'doorward: a stored password hash is of bcrypt, which is not installed; such logins fail: npm install bcrypt')
}
