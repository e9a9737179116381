import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { loginTemplate } from '../email-login/people'
import { type LocalHost, post } from '../local/people'
import { codeFor, owing, person } from '../login-tasks/people'
import { databases } from '../support/databases'
import { type Asked, ask, onCodes, purposes, redeem } from './people'

/** A code that was mailed, and what its client holds: a `request_token`, or the token of a login. */
interface Mailed {
  readonly code: string
  readonly held: string
  readonly asked?: Asked
}

interface Purpose {
  readonly mail: (host: LocalHost) => Promise<Mailed>
  /** At the route of this purpose. `own`: its session, if the route needs one. */
  readonly type: (host: LocalHost, code: string, held: string, own: Mailed) => PromiseLike<supertest.Response>
}

/** Every purpose of a code in `auth_email_logins`. */
const all: Readonly<Record<string, Purpose>> = {
  ...Object.fromEntries(
    purposes.map((purpose): [string, Purpose] => [
      purpose,
      {
        mail: async (host) => {
          const asked = await ask(host, purpose)
          return { code: asked.code, held: asked.requestToken, asked }
        },
        type: (host, code, held, { asked }) =>
          redeem(host, { headers: asked?.headers ?? {}, browser: host.browser() }, purpose, { code, request_token: held }),
      },
    ]),
  ),
  'a login by email': {
    mail: async (host) => {
      const { email } = await person(host)
      const { body } = await post(host, '/email-login/request', { email })
      return { code: String((await host.mails.next({ kind: 'email_login', to: email })).code), held: body.request_token }
    },
    type: (host, code, held) => post(host, '/email-login/confirm', { code, request_token: held }),
  },
  DEVICE: {
    mail: async (host) => {
      const who = await person(host)
      const { task_token } = await owing(host, who)
      return { code: await codeFor(host, who), held: task_token }
    },
    type: (host, code, held) => post(host, '/tasks/device', { code, task_token: held }),
  },
}

describe.each(await databases())('codes of every purpose at the routes of all others (30.5, 29.7) on $name', (database) => {
  const { start } = onCodes(database)
  const throttle = { login: false, signup: false, links: false, mail: false, routes: false } as const

  test.each(Object.keys(all))(
    '%s: its code is 401 everywhere else, with its own request and with that of the route, and still works',
    async (name) => {
      const host = await start({ settings: { unknownDevice: 'code', emailLogin: 'both', ...loginTemplate }, options: { throttle } })
      const one = await (all[name] as Purpose).mail(host)
      for (const [other, { mail, type }] of Object.entries(all)) {
        if (other === name) continue
        const own = await mail(host)
        for (const held of [one.held, own.held]) expect([other, (await type(host, one.code, held, own)).status]).toEqual([other, 401])
        expect([other, (await type(host, own.code, own.held, own)).status]).toEqual([other, 200])
      }
      expect((await (all[name] as Purpose).type(host, one.code, one.held, one)).status).toBe(200)
    },
  )
})
