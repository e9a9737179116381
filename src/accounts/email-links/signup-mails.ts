import type { Request } from 'express'
import { requireCaptcha, requirePassedCaptcha } from '../../captcha/require-captcha'
import type { AuthContext } from '../../context'
import type { Background } from '../../core/background'
import type { GuardedAction } from '../../http/guard-request'
import { withLocalFallback } from '../../rate-limits/local-fallback'
import type { MailPlace } from '../../rate-limits/mail-place'
import type { CounterStore, RateLimit } from '../../rate-limits/rate-limit'
import { counterKey } from '../../rate-limits/rate-limiter'
import { findKnownDevice, type PresentedDevice } from '../../sessions/devices/device-cookie'

interface UnsignedRequest {
  readonly action: GuardedAction
  readonly answer: unknown
  /** In lower case. */
  readonly email: string
  readonly presented: PresentedDevice
  /** False: the limit asks for no captcha, because only the owner of an account can get the mail. */
  readonly isBraked: boolean
}

const nothing = async () => undefined

/** Its keys are of this window alone, so what is given back late counts nowhere else. */
interface Window {
  readonly key: string
  readonly toldKey: string
  readonly endsAt: number
}

function windowOf({ windowSeconds }: RateLimit, at: Date): Window {
  const length = windowSeconds * 1000
  const index = Math.floor(at.getTime() / length)
  const [key, toldKey] = [counterKey('mail:signups', String(index)), counterKey('mail:signups:told', String(index))]
  return { key, toldKey, endsAt: (index + 1) * length }
}

/**
 * Asks for the captcha, and counts the mail of a request without a session. Past `throttle.signupMails` every request needs a passed
 * captcha, so that people can still sign up. A known device of the account does not.
 * @param work what can mail, also in the background
 * @throws CaptchaRequiredError, CaptchaUnavailableError, and the errors of `work`
 */
export async function withSignupMail<T>(
  ctx: AuthContext,
  req: Request,
  { action, answer, email, presented, isBraked }: UnsignedRequest,
  work: (ctx: AuthContext) => Promise<T>,
): Promise<T> {
  const limit = limitOf(ctx)
  const place = limit === false ? null : await takePlace(ctx, limit)
  const { begin, background } = holdersOf(ctx.background, async () => place?.end())
  return begin(async () => {
    const isAsked = place?.isPast === true && isBraked && ctx.captcha !== null
    if (isAsked && (await findKnownDevice(ctx, email, presented)) === null) await requirePassedCaptcha(ctx, req, action, answer)
    else await requireCaptcha(ctx, req, action, answer)
    return work(place ? { ...ctx, mailPlace: place, background } : ctx)
  }).run()
}

interface Holder<T> {
  readonly run: () => Promise<T>
  readonly leave: () => Promise<void>
}

/** The request and its work in the background hold the place. The last one ends it. */
function holdersOf(background: Background, end: () => Promise<void>) {
  let holders = 0
  function begin<T>(work: () => Promise<T>): Holder<T> {
    holders += 1
    const leave = async () => {
      holders -= 1
      if (holders === 0) await end()
    }
    return { run: () => work().finally(leave), leave }
  }
  const held: Background = {
    ...background,
    run(name, work) {
      const holder = begin(work)
      try {
        background.run(name, holder.run)
      } catch (error) {
        void holder.leave()
        throw error
      }
    },
    runIfRoom(name, work) {
      const holder = begin(work)
      const isStarted = background.runIfRoom(name, holder.run)
      if (!isStarted) void holder.leave()
      return isStarted
    },
  }
  return { begin, background: held }
}

/** For the mails of a login, which the limit counts but never refuses. */
export function countingMails(ctx: AuthContext): AuthContext {
  const limit = limitOf(ctx)
  if (limit === false || ctx.mailPlace) return ctx
  const use = () => {
    const counted = takePlace(ctx, limit).then((place) => place.use())
    ctx.background.runIfRoom('count of a mail', async () => void (await counted))
    return async () => (await counted)()
  }
  return { ...ctx, mailPlace: { use } }
}

/** By counters: when the window ends that this process knows to be full. */
const fullUntil = new WeakMap<CounterStore, number>()

/** For a page: true if the form needs a captcha whatever `captchaWhen` says. Counts nothing, because a GET only reads. */
export function isPastSignupMails(ctx: AuthContext): boolean {
  return limitOf(ctx) !== false && (fullUntil.get(ctx.counters) ?? 0) > ctx.now().getTime()
}

/** Call it where the address is verified by a mail of that time. Only then the mail was wanted. */
export async function giveBackSignupMail(ctx: AuthContext, mailedAt: Date | null): Promise<void> {
  const limit = limitOf(ctx)
  if (limit === false || mailedAt === null) return
  const { key } = windowOf(limit, mailedAt)
  if (key !== windowOf(limit, ctx.now()).key) return
  await withLocalFallback(ctx.counters).decrement(key)
  fullUntil.delete(ctx.counters)
}

function limitOf({ mailQueue, rateLimits }: AuthContext): RateLimit | false {
  return mailQueue ? rateLimits.signupMails : false
}

interface CountedPlace extends MailPlace {
  readonly isPast: boolean
  /** Call it once nothing can be mailed any more. */
  readonly end: () => Promise<void>
}

async function takePlace(ctx: AuthContext, limit: RateLimit): Promise<CountedPlace> {
  const { attempts, windowSeconds } = limit
  const counters = withLocalFallback(ctx.counters)
  const { key, toldKey, endsAt } = windowOf(limit, ctx.now())
  const { count } = await counters.increment(key, windowSeconds, attempts)
  const isPast = count > attempts
  if (isPast) fullUntil.set(ctx.counters, endsAt)
  const giveBack = () => counters.decrement(key)
  let isFree = true
  const tell = async () => {
    const { count: told } = await counters.increment(toldKey, windowSeconds, 1)
    if (told === 1) tellFlood(ctx, attempts)
  }
  return {
    isPast,
    use() {
      if (!isFree) return nothing
      isFree = false
      if (count >= attempts) fullUntil.set(ctx.counters, endsAt)
      if (isPast) ctx.background.runIfRoom('signup flood', tell)
      return async () => {
        await giveBack()
        if (!isPast) fullUntil.delete(ctx.counters)
      }
    },
    async end() {
      if (!isFree) return
      isFree = false
      await giveBack()
    },
  }
}

function tellFlood({ events, logger, captcha }: AuthContext, limit: number): void {
  events.emit('signup.flood', { limit })
  const since = captcha
    ? 'Until the window ends, sign-ups and mailed logins need a passed captcha.'
    : 'All of them are sent, because no captcha is set. Set the option captcha (docs/bots.md).'
  logger.warn({ limit }, `doorward: more mails than throttle.signupMails went to addresses without a verified account. ${since}`)
}
