/** The providers that need no more than the two values of a registration, by the class of their client. */
const classes = {
  google: 'GoogleClient',
  github: 'GitHubClient',
  microsoft: 'MicrosoftClient',
  facebook: 'FacebookClient',
  discord: 'DiscordClient',
  gitlab: 'GitLabClient',
  linkedin: 'LinkedInClient',
  slack: 'SlackClient',
  twitch: 'TwitchClient',
} as const

export type ProviderName = keyof typeof classes

export const providerNames = Object.keys(classes) as ProviderName[] // a record has exactly these keys

/** What the auth module needs of a provider. */
export interface ProviderCode {
  readonly name: ProviderName
  readonly className: string
  readonly clientId: string
  readonly clientSecret: string
}

/** The variables are those of `providersFromEnv()`. */
export function codeOf(name: ProviderName): ProviderCode {
  const prefix = `OAUTH_${name.toUpperCase()}_CLIENT`
  return { name, className: classes[name], clientId: `${prefix}_ID`, clientSecret: `${prefix}_SECRET` }
}
