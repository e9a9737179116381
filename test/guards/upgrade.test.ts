import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Request, RequestHandler, Response } from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { errors, type Guards, getAuth, idempotency, rateLimit, requireInternalToken } from '../../src'
import { type LocalHost, onLocal, signedIn } from '../local/people'
import { databases } from '../support/databases'

const [database] = await databases()
if (!database) throw new Error('no database')

/** What a listener of an upgrade can hand to a guard as the response. */
const responses: Record<string, (req: IncomingMessage, socket: Socket) => unknown> = {
  'no response': () => undefined,
  'an empty object': () => ({}),
  'the socket': (_req, socket) => socket,
  'a response without a socket': (req) => new ServerResponse(req),
}

/** Every guard that takes a request, so that a new one is tried too. */
function handlersOf({ guards }: { guards: Guards }, hasCookies: boolean): Record<string, RequestHandler> {
  const { getUser: _getUser, verify: _verify, verifyToken: _verifyToken, requireClaim, requireRole, requireLogin, ...plain } = guards
  return {
    ...Object.fromEntries(Object.entries(plain).map(([name, make]) => [name, (make as () => RequestHandler)()])),
    ...(hasCookies && { requireLogin: requireLogin() }),
    requireClaim: requireClaim('email' as never, 'ada@example.test' as never),
    requireRole: requireRole('staff' as never),
    internal: requireInternalToken({ token: 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe0123456789' }),
    limited: rateLimit({ limit: 1 }),
    repeatable: idempotency(),
  }
}

describe.each(['bearer', 'cookie', 'both', 'session'] as const)(
  'a guard in an upgrade listener, delivery %s (25.7.12)',
  (tokenDelivery) => {
    const { start } = onLocal(database)
    const closing: (() => void)[] = []
    afterEach(() => {
      for (const close of closing.splice(0)) close()
    })
    const hostOf = () =>
      start({
        settings: { tokenDelivery, ...(tokenDelivery !== 'bearer' && { loginUrl: '/sign-in' }) },
        options: { throttle: { login: false } },
      })

    /** Opens a connection that asks for an upgrade, and returns what the guard said to the listener. */
    async function upgrade(handler: RequestHandler, response: keyof typeof responses, headers: Record<string, string>) {
      const server = createServer()
      const said = new Promise<unknown>((resolve, reject) => {
        server.on('upgrade', (req, socket: Socket) => {
          const next = (error?: unknown) => {
            socket.destroy()
            resolve(error ?? { req })
          }
          try {
            handler(req as Request, responses[response]?.(req, socket) as Response, next)
          } catch (error) {
            socket.destroy()
            reject(error)
          }
        })
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
      client.on('error', () => undefined)
      closing.push(
        () => server.close(),
        () => client.destroy(),
      )
      const lines = { Host: 'app.example.test', Connection: 'Upgrade', Upgrade: 'websocket', ...headers }
      client.write(
        `GET /socket?room=1 HTTP/1.1\r\n${Object.entries(lines)
          .map(([name, value]) => `${name}: ${value}`)
          .join('\r\n')}\r\n\r\n`,
      )
      return said
    }

    const codeOf = (said: unknown) => (said instanceof errors.AppError ? said.code : 'in')

    /** The credential of a person, as her browser or client sends it. */
    async function credentialOf(host: LocalHost): Promise<Record<string, string>> {
      const person = await signedIn(host)
      if (tokenDelivery === 'bearer') return { Authorization: `Bearer ${person.token}` }
      return { Cookie: `${tokenDelivery === 'session' ? 'auth_session' : 'access_token'}=${person.token}` }
    }

    test.each(Object.keys(responses))(
      'with %s: a stranger is refused by next(error) at every guard, and nothing is thrown',
      async (response) => {
        const host = await hostOf()
        const name = tokenDelivery === 'session' ? 'auth_session' : 'access_token'
        const strangers: Record<string, string>[] = [
          {},
          { 'Accept-Language': 'pt;q=0.1, en' },
          { Authorization: 'Bearer' },
          { Authorization: 'Bearer a.b.c' },
          { Cookie: `${name}=x` },
          { Cookie: `${name}=x; ${name}=y` },
          { Cookie: `${name}=j:{}; refresh_token=x` },
        ]
        const open = ['optionalAuth', 'csrf', 'limited', 'repeatable'] // lets strangers in, or asks nothing of a GET
        for (const [guard, handler] of Object.entries(handlersOf(host.auth, tokenDelivery !== 'bearer'))) {
          for (const headers of strangers) {
            const said = await upgrade(handler, response, headers)
            if (!open.includes(guard)) expect([guard, headers, said]).toEqual([guard, headers, expect.any(errors.AppError)])
          }
        }
      },
    )

    test.each(Object.keys(responses))('with %s: who is signed in is let in, and getAuth knows the person', async (response) => {
      const host = await hostOf()
      const headers = await credentialOf(host)
      for (const guard of ['requireAuth', 'optionalAuth', 'requireUser', 'requireLiveSession', 'requireFresh'] as const) {
        const said = await upgrade(host.auth.guards[guard](), response, headers)
        expect([guard, codeOf(said)]).toEqual([guard, 'in'])
        expect(getAuth((said as { req: Request }).req).email).toMatch(/@/)
      }
      expect(codeOf(await upgrade(host.auth.guards.requireMfa(), response, headers))).toBe('MFA_REQUIRED')
      expect(codeOf(await upgrade(host.auth.guards.requireAdmin(), response, headers))).toBe('FORBIDDEN')
    })
  },
)
