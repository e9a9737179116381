import { createHash } from 'node:crypto'
import { type LocalHost, newAddress, otherPassword, password, pending, post, resetLink, signedIn } from '../local/people'
import { enrolled } from '../mfa/people'
import { ownerWithFactor, passkeyOwner } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { tokenOf } from '../support/mailbox'
import { changePassword, undoTokenOf } from '../undo/people'
import { stateSettings } from './page-states'

/** With these settings every page exists. */
export const everySetting = {
  ...stateSettings,
  activationBinding: 'strict',
  mailedCodes: 'both',
  signupWith: ['password', 'passkey'],
} as const

/** A browser with its own cookies, real or not. */
export interface Visitor {
  /** Where this browser finds the host. Passkeys are bound to it. */
  readonly url: string
  /** Sends a form of the host. The browser keeps the cookies of the answer. */
  send(path: string, fields: Readonly<Record<string, string>>): PromiseLike<unknown>
}

/** A browser that can open a page now. */
export interface Arrival {
  /** Address of the page on its host. */
  readonly address: string
  /** The person whom the page is about. */
  readonly email: string
  /** Returns a valid code of the person's authenticator app. */
  readonly code?: () => string
}

export interface EveryPage {
  /** Path of the page as it is mounted. */
  readonly route: string
  /** What differs between two entries of one route. */
  readonly state?: string
  /** True if only a person who is logged in sees the page. */
  readonly needsLogin?: boolean
  /** True if the page's first form shows another form on the same page. The entry is about that one. */
  readonly isAfterForm?: boolean
  arrive(host: LocalHost, visitor: Visitor): Promise<Arrival>
}

/** Every page that has a form. A test compares the list with the mounted routes. */
export const formPages: readonly EveryPage[] = [
  { route: '/login', arrive: async () => ({ address: '/auth/login', email: newAddress() }) },
  { route: '/signup', arrive: async () => ({ address: '/auth/signup', email: newAddress() }) },
  { route: '/forgot-password', arrive: async (host) => ({ address: '/auth/forgot-password', email: (await signedIn(host)).email }) },
  {
    route: '/check-mail',
    async arrive(host, visitor) {
      const { email } = await signedIn(host)
      await visitor.send('/auth/email-login/request', { email })
      return { address: '/auth/check-mail', email }
    },
  },
  awaited('a sign-up', async (_host, { send }) => {
    const email = newAddress()
    await send('/auth/signup', { email, password })
    return email
  }),
  awaited('a forgotten password', async (host, { send }) => {
    const { email } = await signedIn(host)
    await send('/auth/forgot-password', { email })
    return email
  }),
  awaited('a first proof', async (host, { send }) => {
    const { email, userId } = await signedIn(host, { emailVerifiedAt: null })
    await send('/auth/login', { email, password })
    await send('/auth/account/email', { form_of: markOf(userId), action: 'verify' })
    return email
  }),
  awaited('a change of address', async (host, { send }) => {
    const { email, userId } = await signedIn(host)
    await send('/auth/login', { email, password })
    await send('/auth/account/email', { form_of: markOf(userId), new_email: `moved-${email}` })
    return email
  }),
  {
    route: '/mfa',
    async arrive(host, visitor) {
      const { email, app } = await enrolled(host)
      await visitor.send('/auth/login', { email, password })
      return { address: '/auth/mfa', email, code: () => app.nextCode() }
    },
  },
  member({ route: '/logout' }),
  member({
    route: '/reauthenticate',
    async also(host, { userId }) {
      const createdAt = new Date(host.clock.now().getTime() - 172_800_000)
      await addIdentity(host.knex, userId, { createdAt })
    },
  }),
  {
    route: '/reauthenticate',
    state: 'after a code was mailed',
    needsLogin: true,
    async arrive(host, visitor) {
      const { email } = await signedIn(host)
      await visitor.send('/auth/login', { email, password })
      return { address: '/auth/reauthenticate?by=email', email }
    },
  },
  ownerOfFactor({ route: '/reauthenticate' }),
  member({ route: '/account/profile' }),
  member({ route: '/account/email', changes: { emailVerifiedAt: null } }),
  member({ route: '/account/password' }),
  member({ route: '/account/connections' }),
  member({
    route: '/account/connections/remove',
    query: '?provider=corp',
    also: async (host, { userId }) => void (await addIdentity(host.knex, userId)),
  }),
  member({
    route: '/account/devices',
    async also(host, { email }) {
      for (const agent of [laptop, phone]) await host.browser().post('/auth/login').set('User-Agent', agent).send({ email, password })
    },
  }),
  member({ route: '/account/security/authenticator' }),
  { ...member({ route: '/account/security/authenticator' }), state: 'the QR code', isAfterForm: true },
  ownerOfFactor({ route: '/account/security/authenticator' }),
  ownerOfFactor({ route: '/account/security/recovery-codes' }),
  ownerOfFactor({ route: '/account/security/turn-off' }),
  member({ route: '/account/security/passkeys/add' }),
  ownerOfPasskey('/account/security/passkeys/rename'),
  ownerOfPasskey('/account/security/passkeys/remove'),
  link('/activate/:token', async (host) => {
    const { email } = await pending(host)
    await post(host, '/signup', { email, password }) // whoever signed up last is the owner
    return { email, token: tokenOf(await host.mails.next({ kind: 'activation', to: email })) }
  }),
  link('/password-reset/:token', async (host) => {
    const { email } = await signedIn(host)
    return { email, token: await resetLink(host, email) }
  }),
  link('/email-verify/:token', async (host) => {
    const { email, token } = await signedIn(host, { emailVerifiedAt: null })
    await post(host, '/email-verify/request', {}, { Authorization: `Bearer ${token}` })
    return { email, token: tokenOf(await host.mails.next({ kind: 'email_verification', to: email })) }
  }),
  link('/email-change/:token', async (host) => {
    const [{ email, token }, newEmail] = [await signedIn(host), newAddress()]
    const change = { new_email: newEmail, current_password: password }
    await post(host, '/email-change/request', change, { Authorization: `Bearer ${token}` })
    return { email, token: tokenOf(await host.mails.next({ kind: 'email_change', to: newEmail })) }
  }),
  link('/email-login/:token', async (host) => {
    const { email } = await signedIn(host)
    await post(host, '/email-login/request', { email })
    return { email, token: tokenOf(await host.mails.next({ kind: 'email_login', to: email })) }
  }),
  link('/security/undo/:token', async (host) => {
    const person = await signedIn(host)
    await changePassword(host, person)
    return { email: person.email, token: await undoTokenOf(host, person.email) }
  }),
]

/** Every page. */
export const everyPage: readonly EveryPage[] = [
  ...formPages,
  member({ route: '/account' }),
  ownerOfPasskey('/account/security'),
  { route: '/signed-out', arrive: async () => ({ address: '/auth/signed-out', email: newAddress() }) },
]

/** As a test calls the page. */
export function nameOf({ route, state }: EveryPage): string {
  return state === undefined ? route : `${route} (${state})`
}

/** What a person types into a field to do what the form is for. Null for a field that nobody types into. */
export function typedInto(name: string, { email, code }: Arrival): string | null {
  if (name === 'new_password' || name === 'confirm_password') return otherPassword
  if (name === 'password' || name === 'current_password') return password
  if (name === 'email') return email
  if (name === 'new_email') return `moved-${email}`
  if (name === 'code') return code?.() ?? '12345678'
  if (name === 'email_code') return '12345678'
  return name === 'name' ? 'Ada Lovelace' : null
}

const laptop = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const phone = 'Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0'

/** What the forms of a person's account carry: whose they are. */
function markOf(userId: string): string {
  return createHash('sha256').update(`doorward form of ${userId}`).digest('base64url')
}

type Member = Awaited<ReturnType<typeof signedIn>>

/** Somebody new, logged in by password. */
function member({
  route,
  query = '',
  changes,
  also,
}: {
  route: string
  query?: string
  changes?: Parameters<typeof signedIn>[1]
  also?: (host: LocalHost, member: Member) => Promise<void>
}): EveryPage {
  return {
    route,
    needsLogin: true,
    async arrive(host, visitor) {
      const person = await signedIn(host, { name: 'Ada', ...changes })
      await also?.(host, person)
      await visitor.send('/auth/login', { email: person.email, password })
      return { address: `/auth${route}${query}`, email: person.email }
    },
  }
}

/** Somebody with an authenticator app and a passkey, logged in by both steps. */
function ownerOfFactor({ route }: { route: string }): EveryPage {
  return {
    route,
    state: 'with a second factor',
    needsLogin: true,
    async arrive(host, visitor) {
      const { email, app } = await ownerWithFactor(host, { origin: visitor.url })
      await visitor.send('/auth/login', { email, password })
      await visitor.send('/auth/mfa', { code: app.nextCode() })
      return { address: `/auth${route}`, email, code: () => app.nextCode() }
    },
  }
}

/** Somebody with a passkey, logged in by password. */
function ownerOfPasskey(route: string): EveryPage {
  return {
    route,
    needsLogin: true,
    async arrive(host, visitor) {
      const { email, passkeyId } = await passkeyOwner(host, { origin: visitor.url })
      await visitor.send('/auth/login', { email, password })
      return { address: `/auth${route}?id=${passkeyId}`, email }
    },
  }
}

/** The page where the code beside the link of a mail is typed. */
function awaited(reason: string, ask: (host: LocalHost, visitor: Visitor) => Promise<string>): EveryPage {
  return {
    route: '/check-mail',
    state: `the code of ${reason}`,
    arrive: async (host, visitor) => ({ address: '/auth/check-mail', email: await ask(host, visitor) }),
  }
}

/** The page of a mailed link, opened in a browser that nothing is known of. */
function link(route: string, mailed: (host: LocalHost) => Promise<{ email: string; token: string }>): EveryPage {
  return {
    route,
    async arrive(host) {
      const { email, token } = await mailed(host)
      return { address: `/auth${route.replace(':token', token)}`, email }
    },
  }
}
