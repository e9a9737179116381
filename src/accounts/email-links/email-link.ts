import type { AuthContext } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { InvalidTokenError } from '../../core/errors'
import { hashOpaqueToken, isOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import type { UserRecord, UserTokenPurpose, UserTokenRecord } from '../../store/auth-store'

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
