import type { EnvSettings } from './every-setting'
import { environmentVariable, inputNames } from './settings'

/**
 * Reads the variables of docs/configuration.md as text; boot converts and checks them. A missing or empty variable is unset. No other
 * variable is read.
 * @param env instead of `process.env`
 */
export function settingsFromEnv(env: Readonly<Record<string, string | undefined>> = process.env): EnvSettings {
  const variables = inputNames.map((setting) => [setting, env[environmentVariable(setting)]] as const)
  return Object.fromEntries(variables.filter(([, text]) => text)) as EnvSettings // texts of the environment by the names of the settings
}
