import { createHmac, type KeyObject, randomInt } from 'node:crypto'
import { type AuthContext, transaction } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { EmailLinkForbiddenError, InvalidTokenError } from '../../core/errors'
import { isUnderAny } from '../../core/keys'
import { constantTimeEqual, hashOpaqueToken, isOpaqueToken, newOpaqueToken, readTypedCode } from '../../core/opaque-token'
import type { EmailLoginRecord, UserRecord, UserTokenPurpose, UserTokenRecord } from '../../store/auth-store'

/** A mailed link, with its token in plain text. The plain token is returned once and never stored. */
export interface LinkToken {
  userId: string
  token: string
  url: string
  expiresAt: Date
}

export type LinkPurpose = Extract<UserTokenPurpose, 'ACTIVATION' | 'PASSWORD_RESET' | 'EMAIL_VERIFICATION' | 'EMAIL_CHANGE' | 'UNDO'>

const purposes: Record<LinkPurpose, { page: string; template: keyof Settings; ttlSeconds: (settings: Settings) => number }> = {
  ACTIVATION: { page: 'activate', template: 'activationUrlTemplate', ttlSeconds: (settings) => settings.activationTtlSeconds },
  PASSWORD_RESET: {
    page: 'password-reset',
    template: 'passwordResetUrlTemplate',
    ttlSeconds: (settings) => settings.passwordResetTtlSeconds,
  },
  EMAIL_VERIFICATION: {
    page: 'email-verify',
    template: 'emailVerificationUrlTemplate',
    ttlSeconds: (settings) => settings.emailVerificationTtlSeconds,
  },
  EMAIL_CHANGE: { page: 'email-change', template: 'emailChangeUrlTemplate', ttlSeconds: (settings) => settings.emailChangeTtlSeconds },
  UNDO: { page: 'security/undo', template: 'undoUrlTemplate', ttlSeconds: (settings) => settings.undoSeconds },
}

/** Makes a link. Older links with the same purpose stay valid. Call the function inside a transaction. */
export async function issueLink(
  ctx: AuthContext,
  userId: string,
  purpose: LinkPurpose,
  payload: string | null = null,
  ttlSeconds: number = purposes[purpose].ttlSeconds(ctx.settings),
): Promise<LinkToken> {
  const now = ctx.now()
  const token = newOpaqueToken()
  const expiresAt = new Date(now.getTime() + ttlSeconds * 1000)
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: hashOpaqueToken(token),
    purpose,
    payload,
    expiresAt,
    usedAt: null,
    createdAt: now,
  })
  return { userId, token, url: urlOf(ctx, purpose, token), expiresAt }
}

/**
 * Makes a further link. If `singleActiveToken` is on, invalidates the older links with this purpose. Call the function inside a transaction
 * that has locked the user's row. Then, after two requests at once, only one link is valid.
 */
export async function replaceLink(
  ctx: AuthContext,
  user: Pick<UserRecord, 'id'>,
  purpose: LinkPurpose,
  payload: string | null = null,
): Promise<LinkToken> {
  if (ctx.settings.singleActiveToken) await ctx.store.userTokens.consumeAllForUser(user.id, ctx.now(), purpose)
  return issueLink(ctx, user.id, purpose, payload)
}

/**
 * Returns the open link of a token. Does not use the link, so that a page can show the link before the person decides.
 * @throws InvalidTokenError
 */
export async function findLink(ctx: AuthContext, token: string, purpose: LinkPurpose): Promise<UserTokenRecord> {
  const link = isOpaqueToken(token) ? await ctx.store.userTokens.find(hashOpaqueToken(token)) : null
  if (link?.purpose !== purpose || link.usedAt || link.expiresAt <= ctx.now()) throw new InvalidTokenError()
  return link
}

/**
 * Uses a link that was found before. Call the function inside the transaction of the link's effect. If two callers use the link, the second
 * caller gets an error.
 * @throws InvalidTokenError
 */
export async function consumeLink(ctx: AuthContext, { tokenHash }: UserTokenRecord, purpose: LinkPurpose): Promise<void> {
  if (!(await ctx.store.userTokens.consume(tokenHash, purpose, ctx.now()))) throw new InvalidTokenError()
}

/** Returns the URL of a login link. Login links have their own table and no `LinkPurpose`, so `urlOf` cannot make this URL. */
export function emailLoginUrl({ settings, prefix }: AuthContext, token: string): string {
  const { emailLoginUrlTemplate: own } = settings
  return own === null ? `${settings.publicUrl}${prefix}/email-login/${token}` : own.replace('{token}', () => token)
}

/**
 * Returns the URL of a link: a page of the host, or our page below the mount path. The URL never uses the Host header (compare RFC 9700
 * section 4.1).
 */
function urlOf({ settings, prefix }: AuthContext, purpose: LinkPurpose, token: string): string {
  const { page, template } = purposes[purpose]
  const own = settings[template]
  if (typeof own === 'string') return own.replace('{token}', () => token)
  return `${settings.publicUrl}${prefix}/${page}/${token}`
}

/** Returns false if a link of this purpose has no URL. The purpose then has no template, and `publicUrl` is empty. */
export function leadsSomewhere(settings: Settings, purpose: LinkPurpose): boolean {
  return settings[purposes[purpose].template] !== null || settings.publicUrl !== ''
}

/** How many tries a code allows. */
export const mostTries = 5

/** Returns eight random digits. */
export function newCode(): string {
  return String(randomInt(100_000_000)).padStart(8, '0')
}

/**
 * Returns the keyed hash of a code. The store keeps only this hash. The hash needs a key, because eight digits are quickly found from a
 * plain hash.
 */
export function hashCode({ keys }: Pick<AuthContext, 'keys'>, id: string, code: string): string {
  return macOf(keys['email-login-code'][0], id, code)
}

/**
 * Returns true if the text is the code of this row. People may type the code in two groups. Call the function only after the try was
 * counted.
 */
export function isCodeOf({ keys }: Pick<AuthContext, 'keys'>, { id, codeHash }: EmailLoginRecord, typed: string): boolean {
  const code = readTypedCode(typed)
  if (codeHash === null || !/^\d{8}$/.test(code)) return false
  return isUnderAny(keys['email-login-code'], (key) => constantTimeEqual(macOf(key, id, code), codeHash))
}

function macOf(key: KeyObject, id: string, code: string): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([id, code]))
    .digest('hex')
}

/**
 * Returns true for an account that waits for its first activation. Returns false for an active or deactivated account. If the users table
 * has no `activatedAt`, a redeemed activation link or a login shows an earlier activation.
 */
export async function isPending({ store }: Pick<AuthContext, 'store'>, user: UserRecord): Promise<boolean> {
  if (user.isActive) return false
  // An account with a login was active before, even if imported rows do not say when.
  if (user.activatedAt !== null || user.lastLoginAt !== null) return false
  return store.users.fields.has('activatedAt') || !(await store.userTokens.wasConsumed(user.id, 'ACTIVATION'))
}

/**
 * Returns the account of an address that a person typed. Returns null without a query if the address has a NUL or a lone surrogate, because
 * a text column cannot store such an address.
 */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}

/**
 * Looks up an address that no account has (RFC 2606 reserves the domain). Some routes respond before looking up the real address. These
 * routes call this function first, so that they can answer 503 if the database is down. The response time reveals nothing, because it does
 * not depend on whether an account exists.
 */
export async function lookForNobody(ctx: AuthContext): Promise<void> {
  await ctx.store.users.findByEmail('nobody@doorward.invalid')
}

/**
 * The value that doorward returns instead of a link if `refusesEmailLink` returned true. doorward made no token, sent no mail and did not
 * activate the account.
 */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/**
 * Returns true if the host rejects mailed links to this account. Never call the function inside our transactions, because the host's hook
 * may be slow.
 */
export async function refusesEmailLink(
  { refusesEmailLink }: Partial<Pick<AuthContext, 'refusesEmailLink'>>,
  user: UserRecord,
): Promise<boolean> {
  return (await refusesEmailLink?.(user)) === true
}

/**
 * Invalidates all links of the account with this purpose, in a transaction of its own, and then throws. So the error does not roll the
 * transaction back. The links count as replaced by a newer link, and not as redeemed.
 * @throws EmailLinkForbiddenError
 */
export async function refuseLink(ctx: AuthContext, { userId }: UserTokenRecord, purpose: LinkPurpose): Promise<never> {
  await transaction(ctx, (ctx) => ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), purpose))
  throw new EmailLinkForbiddenError()
}
