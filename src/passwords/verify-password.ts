import { randomBytes } from 'node:crypto'
import { ServiceUnavailableError } from '../core/errors'
import { describeError, type Logger } from '../core/logger'
import type { UserRecord, UserStore } from '../store/auth-store'
import type { HashOptions, PasswordHasher } from './password-types'

interface Verification {
  matches: boolean
  /** The password matches, and the hash is weaker than a new hash. The caller hashes again and stores the new hash. */
  needsRehash: boolean
}

interface Verifier {
  hasher: PasswordHasher
  dummyHash: () => Promise<string>
  logger: Logger
}

/**
 * A null, unusable or unreadable hash makes it verify a dummy hash with current parameters, so that the time reveals nothing.
 * Verifies the normal form (NFC), and the password as typed if that differs, because an imported hash can be of any form. It verifies both
 * even if the first matches, so that the time reveals nothing. A hash as typed needs a rehash.
 * @throws ServiceUnavailableError when the queue is full. Other errors of the hasher are logged, and the login fails.
 */
export async function verifyPassword(
  ctx: Verifier,
  hash: string | null,
  password: string,
  options: HashOptions = {},
): Promise<Verification> {
  const failed = { matches: false, needsRehash: false }
  try {
    const stored = readable(ctx, hash)
    if (stored === null) {
      await verifyForms(ctx, await ctx.dummyHash(), password, options)
      return failed
    }
    const [normal, asTyped] = await orDummy(ctx, password, options, () => verifyForms(ctx, stored, password, options))
    return normal || asTyped ? { matches: true, needsRehash: !normal || ctx.hasher.needsRehash(stored) } : failed
  } catch (error) {
    if (error instanceof ServiceUnavailableError) throw error
    ctx.logger.error({ error: describeError(error) }, 'doorward: the password hasher failed; the login counts as failed')
    return failed
  }
}

/** A hasher fails at once for an unreadable hash. The time must not reveal that: verifies the dummy hash, unless overloaded. */
async function orDummy<T>(ctx: Verifier, password: string, options: HashOptions, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify()
  } catch (error) {
    if (!(error instanceof ServiceUnavailableError)) await verifyForms(ctx, await ctx.dummyHash(), password, options)
    throw error
  }
}

async function verifyForms({ hasher }: Verifier, hash: string, password: string, options: HashOptions): Promise<readonly boolean[]> {
  const matches: boolean[] = []
  const isMatch = (result: unknown) => result === true // a host's hasher may return any value
  for (const form of new Set([normalPassword(password), password])) matches.push(isMatch(await hasher.verify(hash, form, options)))
  return matches
}

function readable({ hasher, logger }: Verifier, hash: unknown): string | null {
  if (hash === null || isUnusablePassword(hash)) return null
  const reason = typeof hash === 'string' ? (hasher.unreadable?.(hash) ?? null) : 'unknown_format' // a row may contain any value
  if (typeof hash === 'string' && reason === null) return hash
  if (reason === 'bcrypt_not_installed') warnOfBcrypt(logger)
  else logger.error({ reason }, 'doorward: a stored password hash cannot be read; the person must reset the password')
  return null
}

const warned = new WeakSet<Logger>()

/** Once per logger, because an imported table would cause a warning at every login. */
function warnOfBcrypt(logger: Logger): void {
  if (warned.has(logger)) return
  warned.add(logger)
  logger.warn(
    {},
    'doorward: a stored password hash is a bcrypt hash, but the package bcrypt is not installed, so the login failed. Run npm install bcrypt',
  )
}

/** NFC (NIST SP 800-63B section 3.1.1.2): keyboards write `é` in two ways. @throws ValidationError, ServiceUnavailableError */
export function hashPassword(
  { hasher }: { readonly hasher: PasswordHasher },
  password: string,
  options: HashOptions = {},
): Promise<string> {
  return hasher.hash(normalPassword(password), options)
}

/** No password is as long. Such a text stays as it is, because its normalization could take long. */
const longestNormalized = 4_096

export function normalPassword(password: string): string {
  return password.length > longestNormalized ? password : password.normalize('NFC')
}

/** What every new password writes, also an unusable one. A column for the expiry, if there is one, becomes empty. */
export function newPasswordChanges(
  { store }: { readonly store: { readonly users: Pick<UserStore, 'fields'> } },
  hashedPassword: string,
  passwordSetAt: Date | null,
): Pick<UserRecord, 'hashedPassword' | 'passwordSetAt' | 'passwordExpiredAt'> {
  return { hashedPassword, passwordSetAt, ...(store.users.fields.has('passwordExpiredAt') && { passwordExpiredAt: null }) }
}

/** `!` and 43 base64url characters: no password matches. A new value invalidates what began under the earlier password. */
export function unusablePassword(): string {
  return `!${randomBytes(32).toString('base64url')}`
}

export function isUnusablePassword(hash: unknown): boolean {
  return typeof hash === 'string' && /^![\w-]{43}$/.test(hash)
}

/** Without a column `password_set_at`, true for every hash that is not an unusable password. */
export function hasPassword({ passwordSetAt, hashedPassword }: Pick<UserRecord, 'passwordSetAt' | 'hashedPassword'>): boolean {
  return passwordSetAt !== null && !isUnusablePassword(hashedPassword)
}
