/**
 * A login with a provider that is neither OpenID Connect nor built in. You write a client with two calls. doorward does the rest: state,
 * PKCE, the redirect and the account.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) CHAT_URL=https://chat.example CHAT_ID=… CHAT_SECRET=… npx tsx custom-provider.ts
 *   open http://localhost:3000/auth/oauth/chat/login
 */
import { createAuthRouter, createAuthTables, createHttpClient, createKnexStore, errors, type ProviderClient } from 'doorward'
import express from 'express'
import knex from 'knex'

const http = createHttpClient() // time limit 10 seconds, at most 256 KiB, follows no redirects

async function readJson(...call: Parameters<typeof http>): Promise<Record<string, unknown>> {
  const { status, body } = await http(...call)
  if (status !== 200) throw new errors.OAuthError()
  return JSON.parse(Buffer.from(body).toString()) // if this throws, doorward responds 502 OAUTH_ERROR
}

const text = (value: unknown) => (typeof value === 'string' ? value : null)

export function chatClient({ url, id, secret }: { url: string; id: string; secret: string }): ProviderClient {
  return {
    providerName: 'chat',
    clientId: id,
    authorizeUrl: `${url}/authorize`,
    tokenUrl: `${url}/token`,
    scopes: ['profile'],
    async exchangeCode({ code, redirectUri, codeVerifier = '' }) {
      const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: codeVerifier }
      const raw = await readJson(`${url}/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ ...form, client_id: id, client_secret: secret }).toString(),
      })
      if (typeof raw.access_token !== 'string') throw new errors.OAuthError()
      return { accessToken: raw.access_token, tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw }
    },
    async fetchUser({ accessToken }) {
      const raw = await readJson(`${url}/api/user`, { headers: { authorization: `Bearer ${accessToken}` } })
      // Use an id that never changes, and never an address, because another person can later get the same address. JSON.parse rounds a
      // number above 2^53, so such an id could be the id of another person.
      if (typeof raw.id !== 'string' && !Number.isSafeInteger(raw.id)) throw new errors.OAuthError()
      const said = { email: text(raw.email), name: text(raw.name), picture: text(raw.avatar_url) }
      return { provider: 'chat', subject: String(raw.id), emailVerified: null, ...said, raw } // null: chat does not say if it is verified
    },
  }
}

export async function start(port = 3000, filename = 'app.sqlite', chat: ProviderClient = chatFromEnv()) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    providers: { chat },
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      oauthEnabled: true,
      publicUrl: 'http://localhost:3000',
      cookieSecure: false, // false only for plain http on localhost
    },
  })
  await auth.ready() // rejects if a table is wrong
  const app = express()
  app.use('/auth', auth)
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

function chatFromEnv(): ProviderClient {
  const { CHAT_URL = '', CHAT_ID = '', CHAT_SECRET = '' } = process.env
  return chatClient({ url: CHAT_URL, id: CHAT_ID, secret: CHAT_SECRET })
}

if (process.argv[1] === __filename) start()
