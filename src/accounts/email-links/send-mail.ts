import type { AuthContext } from '../../context'
import { ServiceUnavailableError, TooManyRequestsError } from '../../core/errors'
import { hashOpaqueToken } from '../../core/opaque-token'
import type { Locale } from '../../http/locale'
import type { CodeTopic, LinkTopic, NoticeTopic } from '../../mail/compose'
import { type LinkCode, type MailContent, writeMail } from '../../mail/mail-queue'
import type { RateLimit } from '../../rate-limits/rate-limit'
import { attempt, countAttempt, counterKey, giveBack, tellThrottled } from '../../rate-limits/rate-limiter'
import type { UserRecord } from '../../store/auth-store'
import type { LinkPurpose, LinkToken } from './email-link'
import { openEmailLogins } from './issue-email-login'

/** An account, at its own address or at another. */
export interface Recipient extends Pick<UserRecord, 'email' | 'name' | 'emailVerifiedAt'> {
  /** Null if no account has the address. */
  readonly id: string | null
  /** Absent: no account, or another address of one. */
  readonly isActive?: boolean
}

type OtherPurpose = 'EMAIL_LOGIN' | 'CONFIRMATION_CODE' | 'INVITATION'

/**
 * Call it before the link is made: a request without a mail must make no link and invalidate none. Counts nothing without a mailer. A
 * person without a valid link gets one mail an hour beyond the rate limit, so an attacker cannot lock the owner out. Emits `throttled` for
 * false.
 * @param options.besides a link that was already made for this mail
 * @param options.device a device that the account knows; it has a separate limit of five mails an hour
 */
export async function mayMail(
  ctx: AuthContext,
  recipient: Pick<Recipient, 'id' | 'email'>,
  purpose: LinkPurpose | OtherPurpose,
  { besides = null, device = null }: { besides?: LinkToken | null; device?: { id: string } | null } = {},
): Promise<boolean> {
  const { links } = ctx.rateLimits.mail
  const { email } = recipient
  if (!ctx.mailQueue || links.length === 0) return true
  if (device && (await hasMailLeft(ctx, device, email))) return true
  const hour = hourKeys(purpose, email)
  await ctx.counters.increment(hour.sending, aMoment, anHour.attempts)
  const waitSeconds = await takeEach(ctx, links, email)
  if (waitSeconds === 0) await beginHour(ctx, hour)
  await ctx.counters.decrement(hour.sending)
  if (waitSeconds === 0) return true
  const open = await openLinks(ctx, recipient, purpose)
  const own = besides && hashOpaqueToken(besides.token)
  if (open.every(({ tokenHash }) => tokenHash === own) && (await takeHour(ctx, hour))) return true
  const key = counterKey('mail:links', email)
  tellThrottled(ctx, { code: TooManyRequestsError.code, route: 'mail', key, retryAfterSeconds: waitSeconds })
  return false
}

/** An address without an account can have only logins by email. */
async function openLinks(
  ctx: AuthContext,
  { id, email }: Pick<Recipient, 'id' | 'email'>,
  purpose: LinkPurpose | OtherPurpose,
): Promise<readonly { tokenHash: string | null }[]> {
  // An invitation never exceeds the limits, because the administrator can send it again later.
  if (purpose === 'INVITATION') return [{ tokenHash: '' }]
  if (purpose !== 'EMAIL_LOGIN' && purpose !== 'CONFIRMATION_CODE')
    return id === null ? [] : ctx.store.userTokens.listOpen(id, purpose, ctx.now())
  const open = ctx.store.emailLogins ? await openEmailLogins(ctx.store.emailLogins, email, ctx.now()) : []
  return open.filter(({ sessionId }) => (sessionId === null) === (purpose === 'EMAIL_LOGIN'))
}

const anHour: RateLimit = { attempts: 1, windowSeconds: 3_600 }

/** `sent` counts a mail for one hour. `sending` counts requests that are about to send one, which `sent` does not know yet. */
interface HourKeys {
  readonly sent: string
  readonly sending: string
}

/** Seconds. If a process dies, its counter `sending` disappears after this time. */
const aMoment = 60

function hourKeys(purpose: LinkPurpose | OtherPurpose, email: string): HourKeys {
  return { sent: counterKey(`mail:sent:${purpose}`, email), sending: counterKey(`mail:sending:${purpose}`, email) }
}

/** Call it for each mail: the hour starts again. */
async function beginHour({ counters }: AuthContext, { sent }: HourKeys): Promise<void> {
  await counters.reset(sent)
  await counters.increment(sent, anHour.windowSeconds, anHour.attempts)
}

/** Of many callers at once, only one gets true. */
async function takeHour(ctx: AuthContext, { sent, sending }: HourKeys): Promise<boolean> {
  const alone: RateLimit = { attempts: 1, windowSeconds: aMoment }
  if ((await secondsUntilFree(ctx, alone, sending)) > 0) return false
  const isFree = (await secondsUntilFree(ctx, anHour, sent)) === 0
  await giveBack(ctx.counters, alone, sending)
  return isFree
}

async function hasMailLeft(ctx: AuthContext, { id }: { id: string }, email: string): Promise<boolean> {
  const { mails } = ctx.rateLimits.device
  return mails !== false && (await secondsUntilFree(ctx, mails, counterKey('mail:device', `${id} ${email}`))) === 0
}

/** Counts nothing if a limit is reached. Returns the seconds to wait, or 0. */
async function takeEach(ctx: AuthContext, rateLimits: readonly RateLimit[], email: string): Promise<number> {
  const taken: [RateLimit, string][] = []
  for (const [index, rateLimit] of rateLimits.entries()) {
    const key = counterKey(`mail:links:${index}`, email)
    const waitSeconds = await secondsUntilFree(ctx, rateLimit, key)
    if (waitSeconds > 0) {
      for (const [rateLimit, key] of taken) await giveBack(ctx.counters, rateLimit, key)
      return waitSeconds
    }
    taken.push([rateLimit, key])
  }
  return 0
}

/** Counts nothing if the limit is reached. Returns the seconds to wait, or 0. */
async function secondsUntilFree({ counters }: AuthContext, rateLimit: RateLimit, key: string): Promise<number> {
  try {
    await attempt(counters, rateLimit, key, TooManyRequestsError)
    return 0
  } catch (error) {
    if (error instanceof TooManyRequestsError) return Number(error.details['retry_after_seconds'])
    throw error
  }
}

/** An attacker can cause these by a sign-up, a change of address, or a login for an address without an account. */
const byStrangers: ReadonlySet<string> = new Set(['address_taken', 'email_change_taken', 'no_account'])

/** An attacker could use a limit of these notices up before the change that matters. The changes themselves have limits. */
const boundedElsewhere: ReadonlySet<string> = new Set<NoticeTopic | 'account_restored'>([
  'admin_granted',
  'admin_revoked',
  'approval_requested',
  'account_restored',
])

/** Emits `throttled` for false. */
async function mayNotify(ctx: AuthContext, topic: NoticeTopic | 'account_restored', email: string): Promise<boolean> {
  if (boundedElsewhere.has(topic)) return true
  const kind = byStrangers.has(topic) ? 'strangers' : 'notices'
  try {
    await countAttempt(ctx, [{ name: `mail:${kind}`, subject: email, rateLimit: ctx.rateLimits.mail[kind] }])
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/**
 * Call it after the commit and after `mayMail`. The mail does not delay the response. Only `email_change` goes to another address, whose
 * mailbox may belong to another person: pass `{ ...user, email: newEmail, emailVerifiedAt: null }` here and to `mayMail`.
 */
export function mailLink(
  ctx: AuthContext,
  recipient: Recipient,
  topic: LinkTopic,
  { url, expiresAt }: Pick<LinkToken, 'url' | 'expiresAt'>,
  locale: Locale,
  { code, ...about }: Pick<MailContent, 'items' | 'signup'> & { code?: LinkCode | null } = {},
): void {
  const link = { url, expiresAt, issuedAt: ctx.now() }
  countSignupMail(ctx, recipient)
  ctx.mailQueue?.post(writeMail(ctx, { ...addressed(recipient), ...about, ...(code && { code }), topic, locale, link }), recipient.id)
}

/** Like `mailLink`. The mail has a code, or a code and a link. */
export function mailCode(
  ctx: AuthContext,
  recipient: Recipient,
  topic: 'email_login' | CodeTopic,
  { url, code, expiresAt }: { url: string | null; code: string | null; expiresAt: Date },
  locale: Locale,
  about: Pick<MailContent, 'login'> = {},
): void {
  const { publicUrl } = ctx.settings
  const presented = code === null ? {} : { code: { digits: code, host: publicUrl === '' ? null : new URL(publicUrl).host } }
  const link = { url, expiresAt, issuedAt: ctx.now() }
  countSignupMail(ctx, recipient)
  ctx.mailQueue?.post(writeMail(ctx, { ...addressed(recipient), ...presented, ...about, topic, locale, link }), recipient.id)
}

/** Of a request without a session. Returns how to take it back. */
function countSignupMail({ mailPlace, store }: AuthContext, { emailVerifiedAt, isActive }: Recipient): (() => Promise<void>) | undefined {
  const isVerified = store.users.fields.has('emailVerifiedAt') ? emailVerifiedAt !== null : isActive === true
  return isVerified ? undefined : mailPlace?.use()
}

/** Never throws: the change is done. `provider`: the registration key. To a former address: `{ ...user, email: oldEmail }`. */
export function mailNotice(
  ctx: AuthContext,
  recipient: Recipient,
  topic: NoticeTopic | 'account_restored',
  locale: Locale = ctx.settings.defaultLocale,
  about: Pick<MailContent, 'provider' | 'items' | 'canSignUp' | 'hasInvitation' | 'isLeaving' | 'login' | 'removedPasskeys'> = {},
): void {
  if (!ctx.mailQueue) return
  const mail = writeMail(ctx, { ...addressed(recipient), topic, locale, ...about, pageUrl: pageOf(ctx, topic, about) })
  const takeBack = countSignupMail(ctx, recipient)
  ctx.mailQueue.post(mail, recipient.id, async () => {
    const goes = await mayNotify(ctx, topic, recipient.email)
    if (!goes) await takeBack?.()
    return goes
  })
}

/** Where the reader signs in or up, or sees the devices. Null: the mail needs no page, or none has a known address. */
function pageOf({ settings, prefix }: AuthContext, topic: string, { canSignUp = false }: Pick<MailContent, 'canSignUp'>): string | null {
  const isOfDevices = topic === 'device_trusted'
  if (topic !== 'no_account' && topic !== 'address_taken' && topic !== 'approval_granted' && !isOfDevices) return null
  const { publicUrl, pagesEnabled, loginUrl } = settings
  if (isOfDevices && !pagesEnabled) return null
  const page = isOfDevices ? `${prefix}/account/devices` : canSignUp && pagesEnabled ? `${prefix}/signup` : loginUrl
  if (page === null || !page.startsWith('/')) return page
  return publicUrl === '' ? null : `${publicUrl}${page}`
}

/** For a change that an undo link can revert. */
export interface ReservedNotice {
  /** Outside every rate limit. Call it once, after the commit. `link` undoes the change; null: the notice says that there is none. */
  mail(
    recipient: Recipient,
    topic: NoticeTopic | 'account_deletion',
    about: {
      link: Pick<LinkToken, 'url' | 'expiresAt'> | null
      isFinal?: boolean
      usedRecoveryCode?: boolean
      locale?: Locale | undefined
      provider?: string | undefined
    },
  ): void
  /** Releases the place if no notice was sent. Call it in `finally`. */
  release(): void
}

/** A change needs a notice to its owner. Does nothing without a mailer. @throws ServiceUnavailableError if the queue is full */
export function reserveNotice(ctx: AuthContext): ReservedNotice {
  if (!ctx.mailQueue) return { mail() {}, release() {} }
  const place = ctx.mailQueue.reserve()
  if (!place) throw new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
  return {
    mail(recipient, topic, { link, locale = ctx.settings.defaultLocale, provider, ...confirmed }) {
      const content = { ...addressed(recipient), topic, locale, ...confirmed, ...(provider !== undefined && { provider }) }
      place.post(writeMail(ctx, { ...content, ...(link && { link: { ...link, issuedAt: ctx.now() } }) }), recipient.id)
    },
    release: () => place.release(),
  }
}

/** The name only after the address was verified: an attacker may have signed up with a message as the name. */
function addressed({ email, name, emailVerifiedAt }: Recipient) {
  return { to: email, name, saysName: emailVerifiedAt !== null }
}
