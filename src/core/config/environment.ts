import { ConfigurationError } from '../errors'
import type { EnvSettings } from './every-setting'
import { environmentVariable, inputNames } from './settings'

export type Environment = 'production' | 'development' | 'test'

const environments: readonly unknown[] = ['production', 'development', 'test'] satisfies Environment[]

/**
 * Without the option, NODE_ENV decides. The library reads no other variable on its own. Every value except `development` and `test` counts
 * as production, so a missing variable cannot weaken the rules.
 * @throws ConfigurationError if the option has another value than `production`, `development` or `test`
 */
export function isProduction(environment?: Environment): boolean {
  const current = environmentOf(environment)
  return current !== 'development' && current !== 'test'
}

/** In tests, the library does not wait for timers. @throws ConfigurationError as `isProduction` */
export function isTest(environment?: Environment): boolean {
  return environmentOf(environment) === 'test'
}

function environmentOf(environment?: Environment): string | undefined {
  if (environment !== undefined && !environments.includes(environment)) {
    throw new ConfigurationError("Option environment must be 'production', 'development' or 'test'.")
  }
  return environment ?? process.env['NODE_ENV']
}

/**
 * Reads the variables of docs/configuration.md as text. The function reads no other variable. A missing or empty variable counts as unset.
 * At boot, the library converts and checks the text.
 * @param env the variables to read; default `process.env`
 */
export function settingsFromEnv(env: Readonly<Record<string, string | undefined>> = process.env): EnvSettings {
  const variables = inputNames.map((setting) => [setting, env[environmentVariable(setting)]] as const)
  return Object.fromEntries(variables.filter(([, text]) => text)) as EnvSettings // the object has the names of the settings as keys
}
