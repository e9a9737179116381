import type { AuthContext } from '../context'
import { ServiceUnavailableError, TooManyRequestsError } from '../errors'
import type { Locale } from '../http/locale'
import { takeUnit } from '../limits/take-unit'
import { tellThrottled } from '../limits/tell-throttled'
import type { CodeTopic, LinkTopic, NoticeTopic } from '../mail/topics'
import { type MailContent, writeMail } from '../mail/write-mail'
import { hashOpaqueToken } from '../opaque-token'
import type { UserRecord } from '../store/auth-store'
import type { Budget } from '../throttle/counter-store'
import { attempt, counterKey, giveBack } from '../throttle/throttle'
import type { LinkPurpose, LinkToken } from './email-link'

/** Whom a mail goes to: an account's row, or one with another address in its place. */
export interface Recipient extends Pick<UserRecord, 'email' | 'name' | 'emailVerifiedAt'> {
  /** Null: the address has no account. */
  readonly id: string | null
}

/** What a row of `emailLogins` is mailed for: a login, or the confirmation of a session. */
type CodePurpose = 'EMAIL_LOGIN' | 'CONFIRMATION_CODE'

/**
 * Returns true when the address may get one more link of this purpose. Ask before the link is made: a request that mails nothing makes
 * no link and ends none. Without a mailer nothing is counted.
 *
 * Beyond the rate limit a link still goes out where the person has none that works and got none within the hour, so that requests of
 * an attacker cannot keep the owner out. Observers hear `throttled` of a refusal.
 *
 * @param options.besides a link that was made for this very mail already
 * @param options.device a device that the account knows: it has five mails an hour of its own, which nobody else uses up
 */
export async function mayMail(
  ctx: AuthContext,
  recipient: Pick<Recipient, 'id' | 'email'>,
  purpose: LinkPurpose | CodePurpose,
  { besides = null, device = null }: { besides?: LinkToken | null; device?: { id: string } | null } = {},
): Promise<boolean> {
  const { links } = ctx.budgets.mail
  const { email } = recipient
  if (!ctx.postman || links.length === 0) return true
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

/** What works of the same purpose. An address without an account has none but logins by email. */
async function openLinks(
  ctx: AuthContext,
  { id, email }: Pick<Recipient, 'id' | 'email'>,
  purpose: LinkPurpose | CodePurpose,
): Promise<readonly { tokenHash: string | null }[]> {
  if (purpose !== 'EMAIL_LOGIN' && purpose !== 'CONFIRMATION_CODE')
    return id === null ? [] : ctx.store.userTokens.listOpen(id, purpose, ctx.now())
  const open = (await ctx.store.emailLogins?.listOpen(email, ctx.now())) ?? []
  return open.filter(({ sessionId }) => (sessionId === null) === (purpose === 'EMAIL_LOGIN'))
}

const anHour: Budget = { attempts: 1, windowSeconds: 3_600 }

/** `sent`: a mail went out within the hour. `sending`: somebody is about to send one, so that `sent` may not say so yet. */
interface HourKeys {
  readonly sent: string
  readonly sending: string
}

/** For how many seconds a process that dies may leave `sending` behind. */
const aMoment = 60

function hourKeys(purpose: LinkPurpose | CodePurpose, email: string): HourKeys {
  return { sent: counterKey(`mail:sent:${purpose}`, email), sending: counterKey(`mail:sending:${purpose}`, email) }
}

/** The hour counts from the last mail. */
async function beginHour({ counters }: AuthContext, { sent }: HourKeys): Promise<void> {
  await counters.reset(sent)
  await counters.increment(sent, anHour.windowSeconds, anHour.attempts)
}

/** Returns true when no mail went out within the hour, to one caller of however many at once. */
async function takeHour(ctx: AuthContext, { sent, sending }: HourKeys): Promise<boolean> {
  const alone: Budget = { attempts: 1, windowSeconds: aMoment }
  if ((await secondsUntilFree(ctx, alone, sending)) > 0) return false
  const isFree = (await secondsUntilFree(ctx, anHour, sent)) === 0
  await giveBack(ctx.counters, alone, sending)
  return isFree
}

async function hasMailLeft(ctx: AuthContext, { id }: { id: string }, email: string): Promise<boolean> {
  const { mails } = ctx.budgets.device
  return mails !== false && (await secondsUntilFree(ctx, mails, counterKey('mail:device', `${id} ${email}`))) === 0
}

/** Takes one unit of each budget of links, or none. Returns 0 when it took them, else the seconds until the one that is used up is free. */
async function takeEach(ctx: AuthContext, budgets: readonly Budget[], email: string): Promise<number> {
  const taken: [Budget, string][] = []
  for (const [index, budget] of budgets.entries()) {
    const key = counterKey(`mail:links:${index}`, email)
    const waitSeconds = await secondsUntilFree(ctx, budget, key)
    if (waitSeconds > 0) {
      for (const [budget, key] of taken) await giveBack(ctx.counters, budget, key)
      return waitSeconds
    }
    taken.push([budget, key])
  }
  return 0
}

/** Takes one unit and returns 0, or takes none and returns how long the budget stays used up. */
async function secondsUntilFree({ counters }: AuthContext, budget: Budget, key: string): Promise<number> {
  try {
    await attempt(counters, budget, key, TooManyRequestsError)
    return 0
  } catch (error) {
    if (error instanceof TooManyRequestsError) return Number(error.details['retry_after_seconds'])
    throw error
  }
}

/** What an attacker makes us send to an address, by a sign-up, a change of address, or a login where there is no account. */
const byStrangers: ReadonlySet<string> = new Set(['address_taken', 'email_change_taken', 'no_account'])

/** Their number is bounded by that of the changes they are about, so that nobody uses them up before the change that matters. */
const boundedElsewhere: ReadonlySet<string> = new Set<NoticeTopic | 'account_restored'>([
  'admin_granted',
  'admin_revoked',
  'account_restored',
])

/** One mail more that tells the address of something. Observers hear `throttled` of a refusal. */
async function mayNotify(ctx: AuthContext, topic: NoticeTopic | 'account_restored', email: string): Promise<boolean> {
  if (boundedElsewhere.has(topic)) return true
  const kind = byStrangers.has(topic) ? 'strangers' : 'notices'
  try {
    await takeUnit(ctx, ctx.budgets.mail[kind], [`mail:${kind}`, email])
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/**
 * Goes to the stored address, after the commit and off the response path. Ask `mayMail` before.
 *
 * The one mail to another address is `email_change`: pass `{ ...user, email: newEmail, emailVerifiedAt: null }`, to
 * `mayMail` too, because that mailbox may belong to another person.
 */
export function mailLink(
  ctx: AuthContext,
  recipient: Recipient,
  topic: LinkTopic,
  { url, expiresAt }: Pick<LinkToken, 'url' | 'expiresAt'>,
  locale: Locale,
  about: Pick<MailContent, 'items' | 'signup'> = {},
): void {
  const link = { url, expiresAt, issuedAt: ctx.now() }
  ctx.postman?.post(writeMail(ctx, { ...addressed(recipient), ...about, topic, locale, link }), recipient.id)
}

/** The same for a mail with a code, or with a code and a link. */
export function mailCode(
  ctx: AuthContext,
  recipient: Recipient,
  topic: 'email_login' | CodeTopic,
  { url, code, expiresAt }: { url: string | null; code: string | null; expiresAt: Date },
  locale: Locale,
): void {
  const { publicUrl } = ctx.settings
  const shown = code === null ? {} : { code: { digits: code, host: publicUrl === '' ? null : new URL(publicUrl).host } }
  const link = { url, expiresAt, issuedAt: ctx.now() }
  ctx.postman?.post(writeMail(ctx, { ...addressed(recipient), ...shown, topic, locale, link }), recipient.id)
}

/**
 * Tells the owner of what happened to the account; never makes the operation fail, which is done already. `provider` is
 * the registration key, for the topics about identities. What is said to a former address: `{ ...user, email: oldEmail }`.
 */
export function mailNotice(
  ctx: AuthContext,
  recipient: Recipient,
  topic: NoticeTopic | 'account_restored',
  locale: Locale = ctx.settings.defaultLocale,
  about: Pick<MailContent, 'provider' | 'items' | 'canSignUp' | 'login'> = {},
): void {
  if (!ctx.postman) return
  const mail = writeMail(ctx, { ...addressed(recipient), topic, locale, ...about })
  ctx.postman.post(mail, recipient.id, () => mayNotify(ctx, topic, recipient.email))
}

/** Room for the notice of a change that can be undone. */
export interface ReservedNotice {
  /**
   * Sends the notice, outside every rate limit; call it after the commit, once. `link`: what undoes the change; null: the notice
   * says that there is none.
   */
  mail(
    recipient: Recipient,
    topic: NoticeTopic,
    about: {
      link: Pick<LinkToken, 'url' | 'expiresAt'> | null
      isFinal?: boolean
      usedRecoveryCode?: boolean
      locale?: Locale | undefined
      provider?: string | undefined
    },
  ): void
  /** Gives the room back where nothing was sent; for `finally`. */
  release(): void
}

/**
 * Keeps room for the notice of a change before the change is made, because a change whose owner cannot be told must not happen.
 * Without a mailer nothing is kept and nothing is sent.
 * @throws ServiceUnavailableError when no further mail can be queued
 */
export function reserveNotice(ctx: AuthContext): ReservedNotice {
  if (!ctx.postman) return { mail() {}, release() {} }
  const place = ctx.postman.reserve()
  if (!place) throw new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
  return {
    mail(recipient, topic, { link, locale = ctx.settings.defaultLocale, provider, ...confirmed }) {
      const content = { ...addressed(recipient), topic, locale, ...confirmed, ...(provider !== undefined && { provider }) }
      place.post(writeMail(ctx, { ...content, ...(link && { link: { ...link, issuedAt: ctx.now() } }) }), recipient.id)
    },
    release: () => place.release(),
  }
}

/** An attacker may have signed up with this address, and with a message as the name. */
function addressed({ email, name, emailVerifiedAt }: Recipient) {
  return { to: email, name, saysName: emailVerifiedAt !== null }
}
