import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { type Description, flag, shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJsonText } from '../http/send'
import { providerName } from '../pages/provider-marks'

/** What a sign-in form has to know before anybody is signed in. The response is equal for everybody, so caches may keep it. */
export function clientConfigRoutes(ctx: AuthContext): Route[] {
  const text = JSON.stringify(clientConfigOf(ctx))
  return [
    {
      method: 'GET',
      path: '/client-config',
      describes,
      handle: (_req, res) => {
        res.setHeader('Cache-Control', 'public, max-age=300')
        res.removeHeader('Pragma')
        sendJsonText(res, 200, text)
      },
    },
  ]
}

function clientConfigOf({ settings, providers, webauthn, passwordPolicy }: AuthContext): object {
  const { tokenDelivery, oauthEnabled, localAccountsEnabled, signupEnabled, emailLogin, mfaEnabled } = settings
  const takesPasswords = hasPasswords(settings)
  const keys = oauthEnabled ? [...providers.keys()] : []
  return {
    delivery: tokenDelivery,
    providers: keys.map((key) => ({ key, name: providerName(key) })),
    features: {
      signup: localAccountsEnabled && signupEnabled,
      password: takesPasswords,
      email_login: emailLogin,
      passkeys: webauthn !== null,
      second_factor: mfaEnabled,
    },
    password: takesPasswords ? { min_length: passwordPolicy.minLength } : null,
    refresh_grace_seconds: settings.refreshReuseGraceSeconds,
  }
}

const provider = { type: 'object', properties: { key: string, name: string }, required: ['key', 'name'] }
const features = {
  signup: flag,
  password: flag,
  email_login: { enum: ['off', 'link', 'code', 'both'] },
  passkeys: flag,
  second_factor: flag,
}
const describes: Description = {
  summary: 'Get what the sign-in form of an app has to know',
  answers: [
    {
      status: 200,
      description: 'The features that are on. Clients may cache the response for five minutes.',
      schema: shape('ClientConfig', {
        delivery: { enum: ['bearer', 'cookie', 'both', 'session'] },
        providers: { type: 'array', items: provider },
        features: { type: 'object', properties: features, required: Object.keys(features) },
        password: {
          oneOf: [{ type: 'object', properties: { min_length: { type: 'integer' } }, required: ['min_length'] }, { type: 'null' }],
        },
        refresh_grace_seconds: { type: 'integer' },
      }),
    },
  ],
}
