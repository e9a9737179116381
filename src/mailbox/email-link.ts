import type { Settings } from '../config/every-setting'
import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import { hashOpaqueToken, isOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { UserRecord, UserTokenPurpose, UserTokenRecord } from '../store/auth-store'

/** What a mailed link carries: the plaintext, handed out once and never stored. */
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

/** A first link. Inside the caller's unit. */
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
 * A further link; the older ones of its purpose are spent unless `singleActiveToken` is off. Inside the caller's unit,
 * which has locked the user's row: of two requests at once one link stays alive.
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

/** The open link a token stands for, unspent: to look at before anything is decided. @throws InvalidTokenError */
export async function findLink(ctx: AuthContext, token: string, purpose: LinkPurpose): Promise<UserTokenRecord> {
  const link = isOpaqueToken(token) ? await ctx.store.userTokens.find(hashOpaqueToken(token)) : null
  if (link?.purpose !== purpose || link.usedAt || link.expiresAt <= ctx.now()) throw new InvalidTokenError()
  return link
}

/** Uses up a link that was found before, inside the transaction of its effect. A second caller is refused. @throws InvalidTokenError */
export async function spendLink(ctx: AuthContext, { tokenHash }: UserTokenRecord, purpose: LinkPurpose): Promise<void> {
  if (!(await ctx.store.userTokens.consume(tokenHash, purpose, ctx.now()))) throw new InvalidTokenError()
}

/** The same for a link that no row of the one-shot tokens stands for. */
export function emailLoginUrl({ settings, prefix }: AuthContext, token: string): string {
  const { emailLoginUrlTemplate: own } = settings
  return own === null ? `${settings.publicUrl}${prefix}/email-login/${token}` : own.replace('{token}', () => token)
}

/** Never from the Host header (RFC 9700 section 4.1 has the like): a page of the host's, or of ours below the mount. */
function urlOf({ settings, prefix }: AuthContext, purpose: LinkPurpose, token: string): string {
  const { page, template } = purposes[purpose]
  const own = settings[template]
  if (typeof own === 'string') return own.replace('{token}', () => token)
  return `${settings.publicUrl}${prefix}/${page}/${token}`
}

/** False: a link of this purpose has no address, because there is neither a template for it nor a public address of ours. */
export function leadsSomewhere(settings: Settings, purpose: LinkPurpose): boolean {
  return settings[purposes[purpose].template] !== null || settings.publicUrl !== ''
}
