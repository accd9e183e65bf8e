"""The plugin for vLLM, which :mod:`sa_profile.vllm` gives to vLLM: `plugin` says what is hooked when, the others hook a part of vLLM each."""
