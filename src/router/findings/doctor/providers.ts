import { sentenceOf } from '../../../core/error-sentence'
import { isPassportProvider } from '../../../providers/passport-provider'
import type { ProviderClient } from '../../../providers/provider-client'
import { redirectUriOf } from '../../../social/client-share'
import { answerOf, type Check, error, type Fault, type Patient, type Result, warning } from './check'

export const providerChecks: readonly Check[] = [
  { name: 'provider-discovery', examine: discovery },
  { name: 'provider-redirect-uri', examine: redirectUris },
  { name: 'provider-name', examine: otherNames },
  { name: 'provider-profile', examine: noProfile },
  { name: 'provider-off', examine: switchedOff },
]

function clientsOf({ ctx }: Patient): [string, ProviderClient][] {
  if (!ctx.settings.oauthEnabled) return []
  return [...ctx.providers].flatMap(([key, client]): [string, ProviderClient][] => (isPassportProvider(client) ? [] : [[key, client]]))
}

async function discovery(patient: Patient): Promise<Result> {
  const found = await Promise.all(
    clientsOf(patient).map(async ([key, client]): Promise<Fault[]> => {
      try {
        await answerOf(Promise.resolve(client.prepare?.()))
        return []
      } catch (problem) {
        return [
          error(
            `Provider ${key} cannot be read: ${sentenceOf((problem as Error | null)?.cause ?? problem)}`,
            'Its logins are 502.',
            'Check the issuer, and that this machine can reach it.',
          ),
        ]
      }
    }),
  )
  return found.flat()
}

/**
 * Compares the client's redirect URI with the router's route. A difference is only a warning, because a host may forward requests from
 * another URL.
 */
function redirectUris(patient: Patient): Result {
  const { settings, prefix } = patient.ctx
  return clientsOf(patient).flatMap(([key, client]) => {
    const [own, ours] = [redirectUriOf(patient.ctx, key, client), `${settings.publicUrl}${prefix}/oauth/${key}/callback`]
    if (own === ours) return []
    return warning(
      `Provider ${key} redirects people to ${own}, but our route is ${ours}.`,
      'If your app has no route there, a login ends in 404.',
      'Remove redirectUri from the client, or check that it leads to the route.',
    )
  })
}

function otherNames(patient: Patient): Result {
  return clientsOf(patient).flatMap(([key, client]) => {
    if (client.providerName === key) return []
    return warning(
      `The client registered as ${key} has the providerName ${client.providerName}.`,
      `Routes and stored identities use ${key}. If you register the client under another name later, its people cannot sign in.`,
      `Register it as ${client.providerName}, or give it the providerName ${key}.`,
    )
  })
}

function noProfile(patient: Patient): Result {
  return clientsOf(patient).flatMap(([key, client]) => {
    if (!('hasProfileSource' in client) || client.hasProfileSource !== false) return []
    return error(
      `Provider ${key} has neither userinfoUrl nor an id_token.`,
      'doorward cannot know who signed in, so its logins get 502.',
      'Add the scope openid, or userinfoUrl.',
    )
  })
}

function switchedOff({ ctx: { settings, providers } }: Patient): Result {
  if (settings.oauthEnabled || providers.size === 0) return null
  return warning(
    'There are providers, and oauthEnabled (AUTH_OAUTH_ENABLED) is false.',
    'Their routes do not exist.',
    'Set it to true to switch social login on.',
  )
}
