import { createHmac, type KeyObject, randomInt } from 'node:crypto'
import { type AuthContext, transaction } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { EmailLinkForbiddenError, InvalidTokenError } from '../../core/errors'
import { isUnderAny } from '../../core/keys'
import { constantTimeEqual, hashOpaqueToken, isOpaqueToken, newOpaqueToken, readTypedCode } from '../../core/opaque-token'
import type { EmailLoginRecord, LinkCodePurpose, UserRecord, UserTokenRecord } from '../../store/auth-store'

/** A mailed link, with its token in plain text. The plain token is returned once and never stored. */
export interface LinkToken {
  userId: string
  token: string
  url: string
  expiresAt: Date
  /** Belongs to the code beside the link: pass both to the method that redeems the link. Absent while mails have no codes. */
  requestToken?: string
}

export type LinkPurpose = LinkCodePurpose | 'UNDO' | 'ACCOUNT_DELETION'

/** The token of a mailed link, or its hash, which a right code shows. */
export type LinkProof = string | { readonly tokenHash: string }

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
  ACCOUNT_DELETION: {
    page: 'account/restore',
    template: 'accountRestoreUrlTemplate',
    ttlSeconds: (settings) => settings.accountDeletionDays * 86_400,
  },
}

/** Older links stay valid. Call it inside a transaction. */
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

/** Call it inside a transaction that has locked the user's row: with `singleActiveToken`, only one of two links stays valid. */
export async function replaceLink(
  ctx: AuthContext,
  user: Pick<UserRecord, 'id'>,
  purpose: LinkPurpose,
  payload: string | null = null,
): Promise<LinkToken> {
  if (ctx.settings.singleActiveToken) await ctx.store.userTokens.consumeAllForUser(user.id, ctx.now(), purpose)
  return issueLink(ctx, user.id, purpose, payload)
}

/** Does not use the link, so that a page can show it before the person decides. @throws InvalidTokenError */
export async function findLink(ctx: AuthContext, proof: LinkProof, purpose: LinkPurpose): Promise<UserTokenRecord> {
  const tokenHash = hashOf(proof)
  const link = tokenHash === null ? null : await ctx.store.userTokens.find(tokenHash)
  if (link?.purpose !== purpose || link.usedAt || link.expiresAt <= ctx.now()) throw new InvalidTokenError()
  return link
}

function hashOf(proof: LinkProof): string | null {
  if (typeof proof !== 'string') return proof.tokenHash
  return isOpaqueToken(proof) ? hashOpaqueToken(proof) : null
}

/** Call it inside the transaction of the link's effect. @throws InvalidTokenError for the second of two callers */
export async function consumeLink(ctx: AuthContext, { tokenHash }: UserTokenRecord, purpose: LinkPurpose): Promise<void> {
  if (!(await ctx.store.userTokens.consume(tokenHash, purpose, ctx.now()))) throw new InvalidTokenError()
}

/** Login links have their own table and no `LinkPurpose`, so `urlOf` cannot make this URL. */
export function emailLoginUrl({ settings, prefix }: AuthContext, token: string): string {
  const { emailLoginUrlTemplate: own } = settings
  return own === null ? `${settings.publicUrl}${prefix}/email-login/${token}` : own.replace('{token}', () => token)
}

/** A page of the host, or ours below the mount path. Never uses the Host header (compare RFC 9700 section 4.1). */
function urlOf({ settings, prefix }: AuthContext, purpose: LinkPurpose, token: string): string {
  const { page, template } = purposes[purpose]
  const own = settings[template]
  if (typeof own === 'string') return own.replace('{token}', () => token)
  return `${settings.publicUrl}${prefix}/${page}/${token}`
}

/** False if links of this purpose have no URL: no template, and an empty `publicUrl`. */
export function leadsSomewhere(settings: Settings, purpose: LinkPurpose): boolean {
  return settings[purposes[purpose].template] !== null || settings.publicUrl !== ''
}

export const mostTries = 5

export function newCode(): string {
  return String(randomInt(100_000_000)).padStart(8, '0')
}

/** Keyed, because eight digits are quickly found from a plain hash. */
export function hashCode({ keys }: Pick<AuthContext, 'keys'>, id: string, code: string): string {
  return macOf(keys['email-login-code'][0], id, code)
}

/** People may type the code in two groups. Call it only after the try was counted. */
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

/** False for an active or deactivated account. Without `activatedAt`, a redeemed activation link or a login shows an earlier activation. */
export async function isPending({ store }: Pick<AuthContext, 'store'>, user: UserRecord): Promise<boolean> {
  if (user.isActive) return false
  // A login shows an earlier activation, even if imported rows do not say when.
  if (user.activatedAt !== null || user.lastLoginAt !== null) return false
  return store.users.fields.has('activatedAt') || !(await store.userTokens.wasConsumed(user.id, 'ACTIVATION'))
}

/** Null without a query for a NUL or a lone surrogate, which a text column cannot store. */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}

/** Lets a route that responds before the real look-up answer 503. RFC 2606 reserves the domain. Its time reveals nothing. */
export async function lookForNobody(ctx: AuthContext): Promise<void> {
  await ctx.store.users.findByEmail('nobody@doorward.invalid')
}

/** `refusesEmailLink` returned true: doorward made no token, sent no mail and did not activate the account. Returned instead of a link. */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/** Never call it inside our transactions, because the host's hook may be slow. */
export async function refusesEmailLink(
  { refusesEmailLink }: Partial<Pick<AuthContext, 'refusesEmailLink'>>,
  user: UserRecord,
): Promise<boolean> {
  return (await refusesEmailLink?.(user)) === true
}

/** In its own transaction, which the error does not roll back. The links count as replaced. @throws EmailLinkForbiddenError */
export async function refuseLink(ctx: AuthContext, { userId }: UserTokenRecord, purpose: LinkPurpose): Promise<never> {
  await transaction(ctx, (ctx) => ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), purpose))
  throw new EmailLinkForbiddenError()
}
